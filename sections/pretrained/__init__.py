"""The page of the pretrained model: page.py draws it, and the other files are

    model_files  typed                  what must be there first: a model, and a text it can read
    runs                                the model, loaded once for all visitors, and its latest runs
    looking                             the tools, a file each
    find_heads  two_sentences
    knock_out  readings
    scores  beside                      what tools share: a number for every head, and a head in two runs
"""
