import type { Model } from '../../core/models/model.ts'
import type { Task } from '../../core/schemas/task.ts'
import type { NeededProgram, Preset } from './preset.ts'

/** The program of a model whose engine is installed from releases: that of its version has the version in its name. */
export const releasedProgram = ({ engine, engine_version }: Pick<Model, 'engine' | 'engine_version'>): string =>
  engine_version === undefined ? engine : `${engine}-${engine_version}`

/**
 * The fields of a preset whose program `infer engine setup` installs from releases of its maker, in a folder for each
 * below the environment of the engine. A program on the PATH never replaces that of a model's `engine_version`.
 */
export const released = {
  settings: ['engine_version'],
  environments: ({ engine, engine_version }) => [engine_version === undefined ? engine : `${engine}/${engine_version}`],
  programs: model => [neededRelease(model)],
} as const satisfies Partial<Preset>

/** Its program, with the command that installs it. */
export function neededRelease(model: Model): NeededProgram {
  const { engine, engine_version } = model
  const install = `infer engine setup ${engine}${engine_version === undefined ? '' : ` --release ${engine_version} --beside`}`
  return { name: releasedProgram(model), environments: released.environments(model), install }
}

/** How it is installed, for `installation` of the preset. */
export const releasedInstallation = (engine: string) => (_tasks: readonly Task[]) => ({
  program: engine,
  advice: `Install it with: infer engine setup ${engine}`,
})
