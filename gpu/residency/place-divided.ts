import { type CardSplit, type DividedLayers, divideLayers, splitBytes } from '../engines/gguf/card-split.ts'
import { byLastUse, cheapest, evictionCost, minimalChoice } from './evict.ts'
import { byDevice, decide, shareOn } from './occupancy.ts'
import type { DeviceCapacity, Occupant, PlacementDecision, PlacementRequest } from './place.ts'

/** Sets of cards whose evictions are compared: of those that can hold the model, the ones with the least memory. */
const maxCompared = 8

/** A card, and its free bytes if everything is evicted that may be. */
interface Card {
  device: DeviceCapacity
  there: readonly Occupant[]
  room: number
}

interface Option {
  cards: readonly Card[]
  evict: Occupant[]
  made: DividedLayers
}

/**
 * Places a model on several cards, each with as many layers as it has room for: on the fewest cards, first without an
 * eviction, then in place of idle engines; busy ones are waited for only where no number of cards can do without. Undefined
 * when it fits nowhere.
 */
export function placeDivided(
  request: PlacementRequest,
  split: CardSplit,
  devices: readonly DeviceCapacity[],
  occupants: readonly Occupant[],
): PlacementDecision | undefined {
  const { mostDevices = request.devices, mayEvict, avoid = [] } = request
  const there = byDevice(occupants)
  /** What was measured above the estimate is added to each part. */
  const scale = request.bytes / splitBytes(split, request.devices)
  const counts = Array.from(
    { length: Math.min(mostDevices, devices.length) - Math.max(2, request.devices) + 1 },
    (_, at) => Math.max(2, request.devices) + at,
  )

  const divide = (cards: readonly Card[], evicted: readonly Occupant[] | undefined): DividedLayers | undefined =>
    divideLayers(
      split,
      cards.map(card => (evicted ? freeOn(card, evicted) : card.room) / scale),
    )

  function best(count: number, mayLeave: (other: Occupant) => boolean): Option | undefined {
    const cards = devices.map((device): Card => {
      const own = there.get(device.id) ?? []
      return { device, there: own, room: freeOn({ device, there: own }, own.filter(mayLeave)) }
    })
    const good = cards.filter(({ device }) => !avoid.includes(device.id))
    const options: Option[] = []
    for (const among of good.length < cards.length ? [good, cards] : [cards]) {
      const ordered = among.toSorted((a, b) => a.room - b.room)
      for (let at = 0; at + count <= ordered.length && options.length < maxCompared; at++) {
        // The engine sees its cards in the order of the machine.
        const chosen = ordered.slice(at, at + count).toSorted((a, b) => cards.indexOf(a) - cards.indexOf(b))
        if (!divide(chosen, undefined)) continue
        const candidates = [...new Set(chosen.flatMap(card => card.there.filter(mayLeave)))].sort(byLastUse)
        const evict = minimalChoice(candidates, evicted => divide(chosen, evicted) !== undefined)
        options.push({ cards: chosen, evict, made: divide(chosen, evict)! })
      }
      if (options.length > 0) break
    }
    return cheapest(options, ({ evict }) => evictionCost(evict))
  }

  const nobody = () => false
  const idle = (other: Occupant) => mayEvict && !other.pinned && !other.busy
  const anybody = (other: Occupant) => mayEvict && !other.pinned
  const option = firstOf([
    ...counts.flatMap(count => [() => best(count, nobody), () => best(count, idle)]),
    ...counts.map(count => () => best(count, anybody)),
  ])
  if (!option) return undefined
  const used = option.cards.map(({ device }) => device)
  const { layers, bytes } = option.made
  const where = { devices: used.map(({ id }) => id), shares: bytes.map(one => one * scale), layers }
  return decide(request, used, where, option.evict)
}

/** Free bytes of a card after these evictions. */
const freeOn = ({ device, there }: Pick<Card, 'device' | 'there'>, evicted: readonly Occupant[]): number =>
  there.reduce((free, other) => (evicted.includes(other) ? free : free - shareOn(other, device.id)), device.capacity)

function firstOf<One>(tries: readonly (() => One | undefined)[]): One | undefined {
  for (const one of tries) {
    const found = one()
    if (found) return found
  }
  return undefined
}
