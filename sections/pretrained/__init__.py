"""The page of the pretrained model.

    page.py                             the text, the choice of a tool, and looking: the views of every other page
    find_heads  two_sentences           the other tools, a file each
    knock_out  readings
    model_files  typed                  what must be there first: a model, and a text it can read
    runs                                the model loaded once for all visitors, and its latest runs
    scores  beside                      what tools share: a number for every head, and a head in two runs
"""
