"""mlscale literature: one sub-command a paper's model, listed in `command`.

`wu`; `wang_chu`; `nagasaka`; `survey` has Volkov's.
"""
