"""The page to move: one HTML file of a run and its answer.

`page` writes it, from the answer's document and the `surfaces` that it carries beside it;
`measured` sets predicted against measured. `page.js` and `page.css` are what a browser runs and how
that looks.
"""
