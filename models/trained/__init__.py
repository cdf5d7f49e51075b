"""Small models trained in seconds, each in a world small enough to be understood whole.

    from models.trained.tasks import TASKS

    task = TASKS["translation"]
    task.recognise("the cat sleeps")       # before any model runs: is it in the small world, what is the nearest?
    task.pieces(("the", "new"))            # what may come next
    model = task.load()                    # or task.load("free"), or any other of task.variants
    run = task.run(model, "the new bank was signed .")
    run.answer                             # ("la", "nouvelle", "banque", …), and run.predictions with probabilities
    run["cross"]                           # one attention layer: inputs, visible, trace, and labels of rows and columns
    task.run(model, "…", hide=[("cross", 3)], silence=[("encoder", 0)])  # a key hidden, a head silenced
    for progress in task.train():          # stops after each step until asked for the next
        progress.step, progress.loss, progress.accuracy, progress.model

`python -m models.trained` trains them all and writes their weights; `python -m models.trained reverse` just one.
"""
