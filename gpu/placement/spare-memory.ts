/** What one model takes of the cards when it is loaded. */
export interface CardUse {
  modelId: string
  /** Bytes on each of its cards. */
  share: number
  /** Number of its cards, and of its engines. */
  cards: number
  replicas: number
  /** More memory makes its cache larger. */
  grows: boolean
}

/**
 * Returns the bytes by which the share of a model may grow, on each of its cards, without taking memory that a configured
 * model needs: all are put on the cards, the largest first, each where the least remains, and those that can grow divide
 * what is left of their card. 0 when they do not all fit at once, because then they take turns. `capacities`: bytes of
 * each card. Pure.
 */
export function spareShare(modelId: string, models: readonly CardUse[], capacities: readonly number[]): number {
  const cards = capacities.map(capacity => ({ free: capacity, growing: 0 }))
  let own: typeof cards = []
  for (const model of models.toSorted((a, b) => b.share - a.share))
    for (let engine = 0; engine < model.replicas && model.share > 0; engine++) {
      const fitting = cards.filter(({ free }) => free >= model.share).toSorted((a, b) => a.free - b.free)
      if (fitting.length < model.cards) return 0
      for (const card of fitting.slice(0, model.cards)) {
        card.free -= model.share
        if (model.grows) card.growing++
        if (model.modelId === modelId) own = [...own, card]
      }
    }
  return own.length === 0 ? 0 : Math.floor(Math.min(...own.map(({ free, growing }) => free / growing)))
}
