"""The page to move: one HTML file of a run and its answer.

`page` writes it, from the answer's document and the `surfaces` that it carries beside it;
`within` has the answer within each limit that the page may be set to, `measured` sets predicted
against measured. `state.js`, `charts.js` and `page.js` are the script
that a browser runs, `page.css` is how it looks.
"""
