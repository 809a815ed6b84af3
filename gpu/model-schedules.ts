import type { Log } from '../core/log.ts'
import type { Model } from '../core/models/model.ts'
import { dueActions, type ScheduledState, scheduleStates } from '../core/models/model-schedule.ts'
import type { Clock } from './clock.ts'

/** The clock of the machine may be set: schedules are looked at again after this at the latest, milliseconds. */
const againMs = 60_000

/**
 * Follows the schedules of the models: `load` and `unload` at their times, and a model that is pinned is kept loaded as
 * with `replicas.min`. `changed` is called when other models are pinned than before.
 */
export function openModelSchedules(options: {
  models: () => readonly Model[]
  clock: Pick<Clock, 'epoch' | 'after'>
  log: Pick<Log, 'info' | 'warn'>
  changed: () => void
  load: (model: Model) => Promise<void>
  unload: (modelId: string) => void
}) {
  const { models, clock, log, changed, load, unload } = options
  const entriesOf = ({ enabled, schedule = [] }: Model) => (enabled ? schedule : [])
  const statesOf = (model: Model): ScheduledState[] => scheduleStates(entriesOf(model), clock.epoch())
  /** A pinned model stays the same object, by which others see that it has not changed. */
  const kept = new WeakMap<Model, Model>()
  let pinned: ReadonlySet<string> = findPinned()
  let lookedAt = clock.epoch()
  let cancel = () => {}
  let closed = false

  function findPinned(): Set<string> {
    const is = (model: Model) => statesOf(model).some(({ until }) => until !== null)
    return new Set(models().flatMap(model => (is(model) ? [model.id] : [])))
  }

  function asKept(model: Model): Model {
    const known = kept.get(model)
    if (known) return known
    const { min, max } = model.replicas
    const made = { ...model, replicas: { min: Math.max(1, min), max } }
    kept.set(model, made)
    return made
  }

  function look(): void {
    const now = clock.epoch()
    // After the clock was set back, nothing is due a second time.
    const due = models().flatMap(model =>
      dueActions(entriesOf(model), lookedAt, now).map(action => ({ model, action })),
    )
    lookedAt = Math.max(lookedAt, now)
    const before = pinned
    pinned = findPinned()
    if (pinned.size !== before.size || [...pinned].some(id => !before.has(id))) changed()
    for (const { model, action } of due) {
      log.info('The schedule of a model', { model: model.id, do: action })
      if (action === 'unload') unload(model.id)
      else
        void load(model).catch((thrown: unknown) =>
          log.warn('A model could not be loaded at its scheduled time', { model: model.id }, thrown),
        )
    }
    lookAgain()
  }

  function lookAgain(): void {
    cancel()
    const now = clock.epoch()
    const times = models().flatMap(model => statesOf(model).flatMap(({ nextAt, until }) => [nextAt, until ?? nextAt]))
    if (times.length === 0 || closed) return
    cancel = clock.after(Math.max(0, Math.min(againMs, Math.min(...times) - now)), look)
  }

  return {
    /** The models of the configuration; those that are pinned now keep an engine. */
    models: (): readonly Model[] => {
      const all = models()
      return pinned.size === 0 ? all : all.map(model => (pinned.has(model.id) ? asKept(model) : model))
    },
    /** What the schedule of a model does now and next. */
    of: statesOf,
    /** Call it when what it calls is there, and when the models have changed. */
    reconfigured(): void {
      pinned = findPinned()
      lookAgain()
    },
    close(): void {
      closed = true
      cancel()
    },
  }
}
