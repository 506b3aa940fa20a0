"""mlscale literature: one sub-command a paper's model, listed in `command`.

`wu`; `wang_chu`; `nagasaka` evaluates, `nagasaka_fit` keeps and `nagasaka_estimate` applies the
model of power; `survey` has Volkov's.
"""
