"""Published models of the BERT and GPT-2 families, run through the lab's own blocks. Nothing here downloads unasked.

    source = find()                               # files.py: the folder named, the package, or an earlier download
    model = load(source)                          # model.py: once a server, shared by all sessions
    pieces = model.read("The cat sat.")           # pieces.py
    run = model.run(pieces, silenced={(3, 1)})    # transformer.py: every intermediate of every layer
"""
