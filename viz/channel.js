// What the components of a page tell each other: `look` while something is pointed at, `row` the shares to show for it,
// `chosen` what the app follows, `pick` a wish to choose, `pieces` that HTML has come for the places that wait for it, or
// the numbers in it.
const NO_PIECES = { html: {}, of: () => null }
const channel = (globalThis.attentionLab ??= Object.assign(new EventTarget(), { chosen: { query: null, head: 0, also: [] }, pieces: NO_PIECES }))
const tell = (name, detail) => channel.dispatchEvent(new CustomEvent(name, { detail }))
