"""The page to move: one HTML file of a run and its answer.

`page` writes it, from the answer, the answer within each limit that the page may be set to, and the
`surfaces` that it carries beside it; `measured` sets predicted against measured. `state.js`,
`charts.js` and `page.js` are the script that a browser runs, `page.css` is how it looks.
"""
