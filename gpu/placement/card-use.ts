/** An engine on a card. `bytes`: what is booked for it there. */
export interface EngineOnCard {
  engineId: string
  bytes: number
  isReady: boolean
}

/** What one measurement of a card says: bytes of all processes, and of each engine if the driver reports them. */
export interface CardMeasurement {
  id: string
  usedBytes: number
  engines: readonly EngineOnCard[]
  byEngine: ReadonlyMap<string, number> | null
}

/** A card shows the memory of an ended process for this long; until then a rise may be that. Milliseconds. */
const releasedWithinMs = 2_000
/** Bytes by which the driver's own use may differ between two measurements. */
export const useMargin = 64 * 2 ** 20

interface Card {
  /** Bytes that other programs use. */
  foreign: number
  /** Bytes that each ready engine uses, measured. */
  engines: Map<string, number>
  /** The use of the whole card when it was last divided among them. */
  usedBytes: number
  endedAt: number
}

const total = (values: Iterable<number>): number => [...values].reduce((sum, value) => sum + value, 0)

/**
 * Divides the memory in use on each card among its engines and other programs. Exactly, where the driver reports it for
 * each engine. Elsewhere an engine uses what the card shows more when it is ready; what changes later is its own up to its
 * booking, and above that of other programs. So other programs and bookings together are never less than what is in use.
 */
export function openCardUse(now: () => number = () => performance.now()) {
  const cards = new Map<string, Card>()
  const mayBeReleased = ({ endedAt }: Card): boolean => now() - endedAt < releasedWithinMs

  /** A rise is not counted while it may be memory of an ended engine. */
  function setForeign(card: Card, foreign: number, usedBytes: number): void {
    if (foreign > card.foreign && mayBeReleased(card)) return
    card.foreign = Math.max(0, foreign)
    card.usedBytes = usedBytes
  }

  /** Measures engines that are ready and were not measured: what is left is theirs, in proportion to their bookings. */
  function measureNew(card: Card, { usedBytes, engines }: CardMeasurement): void {
    const fresh = engines.filter(({ engineId }) => !card.engines.has(engineId))
    const left = Math.max(0, usedBytes - card.foreign - total(card.engines.values()))
    const booked = total(fresh.map(({ bytes }) => bytes))
    if (booked <= 0 || mayBeReleased(card)) return
    for (const { engineId, bytes } of fresh) card.engines.set(engineId, (left * bytes) / booked)
    card.usedBytes = usedBytes
  }

  return {
    /** Bytes that other programs use on a card. */
    foreignOn: (id: string): number => cards.get(id)?.foreign ?? 0,
    /** Bytes that an engine uses on a card; undefined while that is not known. */
    engineOn: (id: string, engineId: string): number | undefined => cards.get(id)?.engines.get(engineId),
    /** The driver lists processes of other programs that use this much of a card. */
    othersUse(id: string, bytes: number): void {
      const card = cards.get(id)
      if (card) card.foreign = Math.max(card.foreign, bytes)
    },
    /** An engine has ended on these cards. */
    ended(ids: readonly string[]): void {
      for (const id of ids) {
        const card = cards.get(id)
        if (card) card.endedAt = now()
      }
    },
    /** Whether a card may still show the memory of an ended engine: it is measured again soon. */
    isUnsettled: (): boolean => [...cards.values()].some(mayBeReleased),
    /** Whether the driver has to say which engine uses what: all are ready, and the card's use is not explained. */
    needsDetails({ id, usedBytes, engines }: Omit<CardMeasurement, 'byEngine'>): boolean {
      const card = cards.get(id)
      if (!card || engines.length === 0 || !engines.every(({ isReady }) => isReady)) return false
      const isNew = engines.some(({ engineId }) => !card.engines.has(engineId))
      return isNew || Math.abs(usedBytes - card.usedBytes) > useMargin
    },
    measured(measurement: CardMeasurement): void {
      const { id, usedBytes, engines, byEngine } = measurement
      const known = cards.get(id)
      const card = known ?? {
        foreign: 0,
        engines: new Map<string, number>(),
        usedBytes,
        endedAt: Number.NEGATIVE_INFINITY,
      }
      cards.set(id, card)
      for (const engineId of card.engines.keys())
        if (!engines.some(engine => engine.engineId === engineId && engine.isReady)) card.engines.delete(engineId)
      if (engines.length === 0) return setForeign(card, usedBytes, usedBytes)
      // Engines that were taken over: they may use all that is booked, and the rest is of others.
      if (!known) card.foreign = Math.max(0, usedBytes - total(engines.map(({ bytes }) => bytes)))
      const areReady = engines.every(({ isReady }) => isReady)
      if (areReady && byEngine) {
        for (const { engineId } of engines) card.engines.set(engineId, byEngine.get(engineId)!)
        return setForeign(card, usedBytes - total(card.engines.values()), usedBytes)
      }
      if (areReady) measureNew(card, measurement)
      // What other programs have released is free at once, also while engines start or stop.
      const most = usedBytes - total(card.engines.values())
      if (most < card.foreign) return setForeign(card, most, usedBytes)
      if (!engines.every(({ engineId }) => card.engines.has(engineId))) return
      const least =
        usedBytes - total(engines.map(({ engineId, bytes }) => Math.max(bytes, card.engines.get(engineId)!)))
      setForeign(card, Math.max(least, card.foreign), usedBytes)
    },
  }
}
