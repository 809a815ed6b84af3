import { difference, everything, intersection, type Ranges } from './characters.ts'
import { NotSimple, type Pattern } from './pattern.ts'

interface Move {
  over: Ranges
  to: number
}

/**
 * A deterministic automaton over code points; state 0 is the first. A state says where each character leads, and whether a
 * text may end there. Ranges of one state are disjoint. A character without a move is not allowed.
 */
export type Automaton = readonly { moves: readonly Move[]; ends: boolean }[]

const maxStates = 2000
const maxSteps = 2_000_000

/** Returns the automaton that accepts what the pattern matches. Throws NotSimple if it would be too large. */
export function automatonOf(pattern: Pattern): Automaton {
  const loose: { moves: Move[]; free: number[] }[] = []
  let steps = 0
  const spend = (amount: number) => {
    steps += amount
    if (steps > maxSteps) throw new NotSimple('its parts overlap or repeat too often')
  }
  const state = () => {
    if (loose.length >= 10 * maxStates) throw new NotSimple('it repeats too often')
    return loose.push({ moves: [], free: [] }) - 1
  }
  /** Adds states that lead from `from` to the returned one over what the pattern matches. */
  const add = (part: Pattern, from: number): number => {
    spend(1)
    if (part.kind === 'one') {
      const to = state()
      loose[from]!.moves.push({ over: intersection(part.of, everything), to })
      return to
    }
    if (part.kind === 'all') return part.parts.reduce((at, one) => add(one, at), from)
    if (part.kind === 'any') {
      const to = state()
      for (const one of part.parts) loose[add(one, from)]!.free.push(to)
      return to
    }
    let at = from
    for (let count = 0; count < part.min; count++) at = add(part.of, at)
    const to = state()
    if (part.max === Number.POSITIVE_INFINITY) {
      const again = state()
      loose[at]!.free.push(again)
      loose[add(part.of, again)]!.free.push(again)
      loose[again]!.free.push(to)
      return to
    }
    loose[at]!.free.push(to)
    for (let count = part.min; count < part.max; count++) {
      // A separate state, so that no loop back to `at` enters the next repetition.
      at = add(part.of, at)
      loose[at]!.free.push(to)
    }
    return to
  }
  const start = state()
  const end = add(pattern, start)
  const reach = (states: Iterable<number>): number[] => {
    const seen = new Set(states)
    for (const at of seen) for (const to of loose[at]!.free) seen.add(to)
    spend(seen.size)
    return [...seen].toSorted((a, b) => a - b)
  }
  return explore<number[]>(reach([start]), {
    keyOf: states => states.join(),
    ends: states => states.includes(end),
    movesOf: states => {
      const moves = states.flatMap(at => loose[at]!.moves)
      spend(moves.reduce((sum, { over }) => sum + over.length, 0) * moves.length)
      return cuts(moves.map(({ over }) => over)).map(over => {
        spend(moves.length)
        const [low] = over[0]!
        const to = moves.filter(move => move.over.some(([from, until]) => from <= low && low <= until))
        return { over, to: reach(to.map(move => move.to)) }
      })
    },
  })
}

/** Returns the intersection of two automata. Throws NotSimple if it would be too large. */
export const bothOf = (left: Automaton, right: Automaton): Automaton =>
  explore<[number, number]>([0, 0], {
    keyOf: pair => pair.join(),
    ends: ([a, b]) => left[a]!.ends && right[b]!.ends,
    movesOf: ([a, b]) =>
      left[a]!.moves.flatMap(one =>
        right[b]!.moves.map(other => ({
          over: intersection(one.over, other.over),
          to: [one.to, other.to] as [number, number],
        })),
      ).filter(({ over }) => over.length > 0),
  })

/** Returns the automaton limited to texts of `min` to `max` characters. Throws NotSimple if it would be too large. */
export function withLength(automaton: Automaton, min: number, max: number): Automaton {
  const last = max === Number.POSITIVE_INFINITY ? min : max
  return explore<[number, number]>([0, 0], {
    keyOf: pair => pair.join(),
    ends: ([at, length]) => automaton[at]!.ends && length >= min,
    movesOf: ([at, length]) =>
      length === max
        ? []
        : automaton[at]!.moves.map(({ over, to }) => ({
            over,
            to: [to, Math.min(length + 1, last)] as [number, number],
          })),
  })
}

export function accepts(automaton: Automaton, characters: string): boolean {
  let at: number | undefined = 0
  for (const character of characters) {
    const code = character.codePointAt(0)!
    at = automaton[at]!.moves.find(({ over }) => over.some(([low, high]) => low <= code && code <= high))?.to
    if (at === undefined) return false
  }
  return automaton[at]!.ends
}

export const acceptsNothing = (automaton: Automaton): boolean => !automaton.some(({ ends }) => ends)

/** Returns the automaton that accepts every text except the names. */
export function allBut(names: readonly string[]): Automaton {
  const states: { moves: Move[]; ends: boolean }[] = [{ moves: [], ends: true }]
  for (const name of names.filter(one => one.isWellFormed())) {
    let state = 0
    for (const character of name) {
      const code = character.codePointAt(0)!
      const { moves } = states[state]!
      const known = moves.find(({ over }) => over[0]![0] === code)
      state = known?.to ?? states.push({ moves: [], ends: true }) - 1
      if (!known) moves.push({ over: [[code, code]], to: state })
    }
    states[state]!.ends = false
  }
  const to = states.length
  for (const { moves } of states) {
    const known = moves.flatMap(({ over }) => over).toSorted(([a], [b]) => a - b)
    moves.push({ over: difference(everything, known), to })
  }
  return [...states, { moves: [{ over: everything, to }], ends: true }]
}

interface Way<S> {
  keyOf: (state: S) => string
  ends: (state: S) => boolean
  movesOf: (state: S) => { over: Ranges; to: S }[]
}

/** Returns the states that are reachable from the first and from which an end is reachable. */
export function explore<S>(first: S, { keyOf, ends, movesOf }: Way<S>): Automaton {
  const numbers = new Map([[keyOf(first), 0]])
  const states = [first]
  const made: { moves: Move[]; ends: boolean }[] = []
  for (let at = 0; at < states.length; at++) {
    const moves = movesOf(states[at]!).map(({ over, to }) => {
      const key = keyOf(to)
      let number = numbers.get(key)
      if (number === undefined) {
        if (states.length >= maxStates) throw new NotSimple('it has too many cases')
        number = states.push(to) - 1
        numbers.set(key, number)
      }
      return { over, to: number }
    })
    made.push({ moves, ends: ends(states[at]!) })
  }
  return withoutDeadEnds(made)
}

/**
 * Returns the smallest automaton of the same texts, for one whose moves are over the same sets of characters in each
 * state: states are told apart by how they end, then by where they lead, until nothing changes.
 */
export function smallest(automaton: Automaton): Automaton {
  let group = automaton.map(({ ends }) => Number(ends))
  for (let count = 0; ; ) {
    const kinds = new Map<string, number>()
    group = automaton.map(({ moves, ends }) => {
      const kind = `${ends} ${moves.map(({ over, to }) => `${over.join()}:${group[to]}`).join(' ')}`
      return kinds.get(kind) ?? (kinds.set(kind, kinds.size), kinds.size - 1)
    })
    if (kinds.size === count) break
    count = kinds.size
  }
  // The first state is the first of its group, which is therefore group 0.
  return [...new Set(group)].map(one => {
    const { moves, ends } = automaton[group.indexOf(one)]!
    return { moves: moves.map(({ over, to }) => ({ over, to: group[to]! })), ends }
  })
}

function withoutDeadEnds(automaton: Automaton): Automaton {
  const before: number[][] = automaton.map(() => [])
  automaton.forEach(({ moves }, from) => moves.forEach(({ to }) => before[to]!.push(from)))
  const alive = new Set(automaton.flatMap(({ ends }, at) => (ends ? [at] : [])))
  for (const at of alive) for (const from of before[at]!) alive.add(from)
  return automaton.map(({ moves, ends }) => ({ moves: moves.filter(({ to }) => alive.has(to)), ends }))
}

/** Returns the largest character sets that are wholly inside or wholly outside each of the given sets. */
function cuts(sets: readonly Ranges[]): Ranges[] {
  const edges = [...new Set(sets.flatMap(set => set.flatMap(([low, high]) => [low, high + 1])))].toSorted(
    (a, b) => a - b,
  )
  const groups = new Map<string, [number, number][]>()
  for (const [at, low] of edges.slice(0, -1).entries()) {
    const inside = sets.flatMap((set, number) => (set.some(([from, to]) => from <= low && low <= to) ? [number] : []))
    const range: [number, number] = [low, edges[at + 1]! - 1]
    if (inside.length > 0) groups.set(inside.join(), [...(groups.get(inside.join()) ?? []), range])
  }
  return [...groups.values()]
}
