import type { Model } from '../../core/models/model.ts'
import type { Task } from '../../core/schemas/task.ts'
import type { NeededProgram, Preset } from './preset.ts'

/** The program of an installed version of an engine, which has the version in its name, so that no other can take its place. */
export const programOfVersion = (program: string, version: string | undefined): string =>
  version === undefined ? program : `${program}-${version}`

/** The program of a model whose engine is installed from releases. */
export const releasedProgram = ({ engine, engine_version }: Pick<Model, 'engine' | 'engine_version'>): string =>
  programOfVersion(engine, engine_version)

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

/** The folders of a version of environments that `infer engine setup` makes; the environments, for the current one. */
export const inVersion = (environments: readonly string[], version: string | undefined): readonly string[] =>
  version === undefined ? environments : environments.map(name => `${name}/${version}`)

/**
 * The fields of a preset whose program is in an environment of its libraries with its own name. A model of no version
 * takes the current one, else the program on the PATH.
 */
export const inOwnEnvironment = (name: string, program: string = name) =>
  ({
    environments: ({ engine_version }) => inVersion([name], engine_version),
    programs: ({ engine_version }) =>
      engine_version === undefined ? [] : [neededVersion(name, program, engine_version)],
  }) as const satisfies Partial<Preset>

/** The program of a version that a model names. */
export const neededVersion = (environment: string, program: string, version: string): NeededProgram => ({
  name: programOfVersion(program, version),
  environments: inVersion([environment], version),
  advice: `Set 'engine_version' to a version that 'infer engine list' shows for ${environment}, or remove it.`,
})
