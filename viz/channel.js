// What the components of a page tell each other: `look` while something is pointed at, `row` the shares to show for it,
// `chosen` what the app follows, `pick` a wish to choose, `pieces` that HTML and numbers have come for the places that wait.
// `turn` counts what was picked here, so that Python's answer to an earlier pick can be told, and `picked` is when it was.
// What is chosen `elsewhere`, in another head or layer, has no numbers here until they come.
const NO_PIECES = { html: {}, of: () => null }
const START = { chosen: { query: null, head: 0, also: [] }, pieces: NO_PIECES, turn: 0, picked: -Infinity }
const channel = (globalThis.attentionLab ??= Object.assign(new EventTarget(), START))
const tell = (name, detail) => channel.dispatchEvent(new CustomEvent(name, { detail }))
