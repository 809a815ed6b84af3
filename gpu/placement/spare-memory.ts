import type { DeviceCapacity } from '../residency/place.ts'

/** What one model takes of the cards when it is loaded. */
export interface CardUse {
  modelId: string
  /** Bytes on each of its cards. */
  share: number
  /** It takes the same share of all of its cards, so of a larger one more than of the smallest. */
  takesShare?: boolean
  /** Number of its cards, and of its engines. */
  cards: number
  replicas: number
  /** More memory makes its cache larger. */
  grows: boolean
}

/**
 * Returns the bytes by which the part of a model may grow, on the smallest of its cards, without taking memory that a
 * configured model needs: all are put on the cards, the largest first, each where the least remains, and those that can grow
 * divide what is left of their card. 0 when they do not all fit at once, because then they take turns. Pure.
 */
export function spareShare(
  modelId: string,
  models: readonly CardUse[],
  devices: readonly Pick<DeviceCapacity, 'capacity' | 'totalBytes'>[],
): number {
  const cards = devices.map(({ capacity, totalBytes = capacity }) => ({
    total: totalBytes,
    free: capacity,
    growing: 0,
  }))
  let own: typeof cards = []
  for (const model of models.toSorted((a, b) => b.share - a.share))
    for (let engine = 0; engine < model.replicas && model.share > 0; engine++) {
      const fitting = cards.filter(({ free }) => free >= model.share).toSorted((a, b) => a.free - b.free)
      if (fitting.length < model.cards) return 0
      const chosen = fitting.slice(0, model.cards)
      const smallest = Math.min(...chosen.map(({ total }) => total))
      for (const card of chosen) {
        const parts = model.takesShare ? card.total / smallest : 1
        card.free -= model.share * parts
        if (card.free < 0) return 0
        if (model.grows) card.growing += parts
      }
      if (model.modelId === modelId) own = [...own, ...chosen]
    }
  return own.length === 0 ? 0 : Math.floor(Math.min(...own.map(({ free, growing }) => free / growing)))
}
