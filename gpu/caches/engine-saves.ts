import type { Caches, SavingEngine } from './caches.ts'

/** An engine without a request for this long saves its conversations, milliseconds: what it loses in a crash is newer. */
const idleMs = 2_000
/** How long an idle engine may save, milliseconds. A request that comes meanwhile ends it. */
const maxIdleSaveMs = 30_000

/** Calls `run` once after `ms`. Returns a function that cancels the call. */
interface Timer {
  after(ms: number, run: () => void): () => void
}

interface Engine {
  engine: SavingEngine
  cancel: () => void
  saving: Promise<void> | undefined
}

/** Has the running engines save their conversations: when they are idle, and before they end. */
export function openEngineSaves(caches: Pick<Caches, 'save'>, clock: Timer) {
  const engines = new Map<string, Engine>()

  function save(one: Engine, maxMs: number): Promise<void> {
    one.cancel()
    return (one.saving ??= caches.save(one.engine, maxMs).finally(() => (one.saving = undefined)))
  }

  return {
    ready(engineId: string, engine: SavingEngine): void {
      engines.set(engineId, { engine, cancel() {}, saving: undefined })
    },
    /** A request has ended: once the engine has been idle for a while, it saves. */
    used(engineId: string, isIdle: () => boolean): void {
      const one = engines.get(engineId)
      if (!one) return
      one.cancel()
      if (isIdle()) one.cancel = clock.after(idleMs, () => isIdle() && void save(one, maxIdleSaveMs))
    },
    /** Saves what is not saved yet, before the engine ends. Resolves after `maxMs` at the latest. */
    async finish(engineId: string, maxMs: number): Promise<void> {
      const one = engines.get(engineId)
      if (!one) return
      let cancel = () => {}
      const timeout = new Promise<void>(resolve => (cancel = clock.after(maxMs, resolve)))
      await Promise.race([(one.saving ?? Promise.resolve()).then(() => save(one, maxMs)), timeout])
      cancel()
    },
    ended(engineId: string): void {
      engines.get(engineId)?.cancel()
      engines.delete(engineId)
    },
  }
}
export type EngineSaves = ReturnType<typeof openEngineSaves>
