import type { LaunchNeeds } from './launcher.ts'

/** What a launch in a cluster asks for besides its cards: cores for each, and main memory beside its model. */
const coresOfCard = 4
const hostBytes = 16 * 2 ** 30

/** What an engine with so many cards on each of its nodes asks its pool for. `modelBytes`: of its model in main memory. Pure. */
export const launchNeeds = (cards: number, modelBytes: number, maxMs: number | null, nodes = 1): LaunchNeeds => ({
  nodes,
  cards,
  cpus: coresOfCard * Math.max(1, cards),
  memoryBytes: Math.ceil(hostBytes + modelBytes),
  maxMs,
})
