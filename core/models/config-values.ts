import { type EnvironmentVariable, environmentVariables } from '../environment-variables.ts'
import type { ConfigSource, ConfigValue, VariableValue } from '../inspection.ts'
import type { Config } from './config.ts'
import { type ConfigKey, inLine, sections } from './config-keys.ts'
import { writtenValue } from './described-schema.ts'

/** Models have a page of their own, and their keys may contain secrets. */
const isShown = ({ key }: ConfigKey): boolean => key !== 'models' && !/\[\]|<name>/.test(key)

/**
 * Returns every key of infer.yaml but those of models and plans, with the value that is in force and where it comes
 * from. `isInFile` says whether the file sets a key, `fromCommandLine` names those that an option overrides, `pending`
 * those that the file has changed since the start, such as `limits.drain_timeout` or `media`.
 */
export function configValues(
  config: Config,
  keys: readonly ConfigKey[],
  {
    isInFile,
    fromCommandLine,
    pending,
  }: { isInFile: (path: readonly string[]) => boolean; fromCommandLine: readonly string[]; pending: readonly string[] },
): ConfigValue[] {
  const shown = keys.filter(isShown)
  // A key with keys below has no value of its own.
  const own = shown.filter(({ key }) => !shown.some(other => other.key.startsWith(`${key}.`)))
  return own.map(about => {
    const { key, section, meaning, absent, default: written } = about
    const path = key.split('.')
    const source: ConfigSource = fromCommandLine.includes(key) ? 'command_line' : isInFile(path) ? 'file' : 'default'
    const value = path.reduce<unknown>((of, name) => (of as Record<string, unknown> | undefined)?.[name], config)
    return {
      key,
      section: sections[section].title,
      meaning,
      // For plans only the names are shown, because their figures are limits of organizations.
      value: inLine(key === 'plans' ? Object.keys(value as object) : writtenValue(value, about.unit ?? undefined)),
      absent,
      default: written,
      source,
      isPending: pending.some(name => key === name || key.startsWith(`${name}.`)),
    }
  })
}

/** A password in an address. */
const credentials = /:\/\/[^/\s]*@/

/** Returns the environment variables that infer reads. Values that may be or contain a secret are left out. */
export const variableValues = (environment: Readonly<Record<string, string | undefined>>): VariableValue[] =>
  Object.entries<EnvironmentVariable>(environmentVariables).map(([name, { meaning, default: without, secret }]) => {
    const value = environment[name]
    return {
      name,
      meaning,
      isSet: value !== undefined,
      value: value === undefined || secret || credentials.test(value) ? null : value,
      default: without,
    }
  })
