import type { DeviceCapacity } from './place.ts'

/** A card of which an engine takes the same share as of its others, without regard to what else is on them. */
type Card = Pick<DeviceCapacity, 'capacity' | 'totalBytes' | 'usedByOthers'>

const totalOf = ({ capacity, totalBytes, usedByOthers = 0 }: Card): number => totalBytes ?? capacity + usedByOthers

/** The share of this card, 0 to 1, that so many bytes are. */
export const shareFor = (card: Card, bytes: number): number => bytes / totalOf(card)

/** Bytes of this card that are such a share. */
export const bytesFor = (card: Card, share: number): number => totalOf(card) * share

/**
 * Returns the most bytes that an engine can have on each of the first n of these cards, for every n, if it takes the same
 * share of all of them.
 */
export function equalCapacities(cards: readonly Card[]): number[] {
  let share = Number.POSITIVE_INFINITY
  let smallest = Number.POSITIVE_INFINITY
  return cards.map(card => {
    share = Math.min(share, shareFor(card, card.capacity))
    smallest = Math.min(smallest, totalOf(card))
    return Math.floor(share * smallest)
  })
}
