import { sameEngine } from '../core/models/change.ts'
import type { Model } from '../core/models/model.ts'
import { type Line, newLine, notOffered, refuse, succeed } from './line.ts'

/** The lines there are: one for each model that was asked for or is kept loaded. Retired ones are not among them. */
export function openRoster({ now, retired }: { now: () => number; retired: (of: Line) => void }) {
  const all = new Map<string, Line>()

  function retire(of: Line): void {
    of.retired = true
    retired(of)
  }

  /**
   * The line of a model, made or brought up to date with its configuration. Where that asks for another engine there is
   * a new line: it takes over who waits and is loaded if the old one was, whose engines end after their requests.
   */
  function line(model: Model, wanted: Line['wanted'], slots: number): Line {
    const known = all.get(model.id)
    if (known && sameEngine(known.model, model)) return Object.assign(known, { model, wanted, slots })
    const made = newLine(model, wanted, slots)
    all.set(model.id, made)
    if (known) {
      succeed(known, made, now())
      retire(known)
    }
    return made
  }

  return {
    line,
    /** Its model is not offered any more: who waits is told so, and its engines end after their requests. */
    drop(modelId: string): void {
      const of = all.get(modelId)
      if (!of) return
      all.delete(modelId)
      refuse(of, () => notOffered(modelId))
      retire(of)
    },
    get: (modelId: string): Line | undefined => all.get(modelId),
    values: (): Iterable<Line> => all.values(),
    ids: (): string[] => [...all.keys()],
  }
}
