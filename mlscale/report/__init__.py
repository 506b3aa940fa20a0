"""The page to move: `page` writes it, `surfaces` is what it carries beside the answer's document.

`page.js` and `page.css` are what a browser runs and how it looks, written by hand.
"""
