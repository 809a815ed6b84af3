import { statSync } from 'node:fs'
import type { Model } from '../core/models/model.ts'
import { localPool, poolsOf } from '../core/models/pools.ts'
import { impliedBy, type Task } from '../core/schemas/task.ts'
import type { NeededProgram } from './presets/preset.ts'
import { presetOf } from './presets/presets.ts'
import { findProgram } from './sandbox/program.ts'

interface Checked {
  /** Version of the checked file: inode, modification time and size. */
  version: string
  /** Why it cannot be used; null when it can, and until the first test has ended. */
  fault: string | null
  done: Promise<void>
  /** When the test ended, in milliseconds of `now`; undefined while it runs. */
  endedAt: number | undefined
}

/** Milliseconds after which a program whose test failed is tested again: it may have failed only because of high load. */
const retryMs = 60_000

/**
 * Finds out which programs that models need are missing on this machine. Resolves when the programs of these models are
 * checked. Every later call checks the files again, so programs that are installed or replaced later are found.
 * `searchPath` returns the folders in which engines look for a program, as PATH; `now` milliseconds that never go back.
 */
export async function openNeededPrograms(
  models: readonly Model[],
  searchPath: (environments?: readonly string[]) => string,
  now: () => number,
) {
  const checked = new Map<string, Checked>()

  /** Runs the test of a file if it has changed since the last test, or if that failed a while ago. */
  function check(file: string, test: NonNullable<NeededProgram['test']>): Checked {
    const { ino, mtimeMs, size } = statSync(file, { throwIfNoEntry: false }) ?? {}
    const version = `${ino} ${mtimeMs} ${size}`
    const known = checked.get(file)
    if (known?.version === version) {
      if (known.fault !== null && known.endedAt !== undefined && now() - known.endedAt >= retryMs)
        run(known, file, test)
      return known
    }
    const found: Checked = { version, fault: null, done: Promise.resolve(), endedAt: undefined }
    run(found, file, test)
    checked.set(file, found)
    return found
  }

  /** The result of the previous test stays in force until this one has ended. */
  function run(one: Checked, file: string, test: NonNullable<NeededProgram['test']>): void {
    one.endedAt = undefined
    one.done = test(file).then(fault => {
      one.fault = fault
      one.endedAt = now()
    })
  }

  /** Why a program cannot be used, as the end of a sentence; null when it can. */
  function faultOf({ name, test, environments }: NeededProgram): string | null {
    const file = findProgram(name, searchPath(environments))
    if (file === undefined) return 'is not installed'
    return test ? check(file, test).fault : null
  }

  /**
   * Returns which program is missing for the task, as a sentence that says what to install; null when none is missing.
   * A changed program counts as usable until its check has ended.
   */
  function missing(model: Model, task: Task): string | null {
    // Other machines have programs of their own.
    if (!poolsOf(model).some(({ pool }) => pool === localPool)) return null
    for (const program of presetOf(model).programs?.(model, task) ?? []) {
      const fault = faultOf(program)
      if (fault === null) continue
      const name = program.name.split('/').at(-1)!
      const advice =
        program.advice ??
        (program.install === undefined
          ? `Install it (Debian, Ubuntu: sudo apt install ${name}) and try again.`
          : `Install it with: ${program.install}`)
      return `'${model.id}' cannot do '${task}' here: its engine needs the program '${program.name}', which ${fault}. ${advice}`
    }
    return null
  }

  /** Returns the first such sentence when the model can do none of its tasks; null when it can do at least one. */
  function missingForAll(model: Model): string | null {
    let reason: string | null = null
    for (const task of model.tasks) {
      if (impliedBy[task]) continue
      const one = missing(model, task)
      if (one === null) return null
      reason ??= one
    }
    return reason
  }

  for (const model of models) if (model.enabled) missingForAll(model)
  const tested = () => Promise.all([...checked.values()].map(({ done }) => done))
  await tested()
  return {
    missing,
    missingForAll,
    /** Resolves when no test runs. */
    tested,
  }
}
