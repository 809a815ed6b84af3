/** Where a character leads: to a state, to a grammar rule that takes over behind it, or to 'nowhere': not allowed. */
export type Target = number | { rule: string } | 'nowhere'

export interface State {
  steps: ReadonlyMap<string, Target>
  /** Where all other characters lead. */
  otherwise: Target
  /** Whether the text may end here. */
  mayEnd: boolean
}

/** Free text that must not contain, or not begin with, certain words. State 0 is where it begins. */
export type Automaton = readonly State[]

/** Where the character leads from a state. */
export const step = (automaton: Automaton, state: number, character: string): Target => {
  const { steps, otherwise } = automaton[state]!
  return steps.get(character) ?? otherwise
}

/**
 * Any text until the marker is complete, which leads to `found`. State n has seen the first n characters of the
 * marker, the construction of Knuth, Morris and Pratt. `offset` is the number that state 0 gets.
 */
export function untilMarker(marker: string, found: Target, mayEnd: boolean, offset = 0): State[] {
  return Array.from(marker, (_, seen) => {
    const steps = new Map<string, Target>()
    for (const character of new Set(marker)) {
      const reached = overlap(marker.slice(0, seen) + character, marker)
      if (reached > 0) steps.set(character, reached === marker.length ? found : offset + reached)
    }
    return { steps, otherwise: offset, mayEnd }
  })
}

/** Length of the longest end of the text that is a beginning of the marker. */
function overlap(text: string, marker: string): number {
  let length = Math.min(text.length, marker.length)
  while (!text.endsWith(marker.slice(0, length))) length--
  return length
}

interface Node {
  /** Whether white space may be repeated here. */
  loose: boolean
  children: Map<string, Node | 'nowhere'>
}

/**
 * Any text that does not begin with one of the openings. An opening is a row of words between which, and before which,
 * there may be white space; no opening is the beginning of another. Other text continues as `rest` defines, whose state
 * numbers must begin after those of this automaton: it gets the first free number.
 */
export function notBeginningWith(
  openings: readonly (readonly string[])[],
  rest: (offset: number) => State[],
): { automaton: Automaton; rest: number } {
  const root: Node = { loose: true, children: new Map() }
  for (const words of openings) {
    let node = root
    words.forEach((word, at) => {
      for (const [place, character] of Array.from(word).entries()) {
        if (at === words.length - 1 && place === word.length - 1) node.children.set(character, 'nowhere')
        else node = child(node, character)
      }
      node.loose = true
    })
  }
  const nodes: Node[] = [root]
  for (const node of nodes) for (const next of node.children.values()) if (next !== 'nowhere') nodes.push(next)
  const numbers = new Map(nodes.map((node, at) => [node, at]))
  const tail = rest(nodes.length)
  const states = nodes.map((node, at): State => {
    const steps = new Map<string, Target>(tail[0]!.steps)
    if (node.loose) for (const space of whiteSpace) steps.set(space, at)
    for (const [character, next] of node.children)
      steps.set(character, next === 'nowhere' ? 'nowhere' : numbers.get(next)!)
    return { steps, otherwise: tail[0]!.otherwise, mayEnd: true }
  })
  return { automaton: [...states, ...tail], rest: nodes.length }
}

function child(node: Node, character: string): Node {
  const known = node.children.get(character)
  if (known !== undefined && known !== 'nowhere') return known
  const made: Node = { loose: false, children: new Map() }
  node.children.set(character, made)
  return made
}

const whiteSpace = ' \t\r\n'

/** The automaton as rules of a GBNF grammar, `name-0` first. */
export function rulesOf(automaton: Automaton, name: string): string[] {
  return automaton.map(({ steps, otherwise, mayEnd }, at) => {
    const ways = new Map<string, { target: Target; characters: string }>()
    for (const [character, target] of steps) {
      const way = ways.get(wordFor(target, name)) ?? { target, characters: '' }
      ways.set(wordFor(target, name), { target, characters: way.characters + character })
    }
    const all = Array.from(steps.keys()).join('')
    const parts = [...ways.values()]
      .filter(({ target }) => target !== 'nowhere')
      .map(({ target, characters }) => `[${classOf(characters)}] ${wordFor(target, name)}`)
    if (otherwise !== 'nowhere') parts.push(`[^${classOf(all)}] ${wordFor(otherwise, name)}`)
    if (mayEnd) parts.push('""')
    return `${name}-${at} ::= ${parts.join(' | ')}`
  })
}

const wordFor = (target: Target, name: string): string =>
  typeof target === 'number' ? `${name}-${target}` : target === 'nowhere' ? '' : target.rule

/** Characters inside the brackets of a GBNF class, by number where they might mean something there. */
const classOf = (characters: string): string =>
  Array.from(characters, character =>
    /[A-Za-z0-9]/.test(character)
      ? character
      : `\\U${character.codePointAt(0)!.toString(16).toUpperCase().padStart(8, '0')}`,
  ).join('')
