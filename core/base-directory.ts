import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

/** The variables that name a folder for the files of one user, and the folder below the home directory without them. */
const unset = {
  XDG_CACHE_HOME: '.cache',
  XDG_CONFIG_HOME: '.config',
  XDG_DATA_HOME: '.local/share',
  XDG_STATE_HOME: '.local/state',
} as const

/**
 * Returns the home directory of the user. The system does not know the dynamic user of a service where the package
 * libnss-systemd is missing, nor an arbitrary user of a container: then it is `/`, as systemd has it for the former.
 */
export function homeDirectory(
  environment: Readonly<Record<string, string | undefined>>,
  ofUser: () => string = homedir,
): string {
  if (environment.HOME) return environment.HOME
  try {
    return ofUser()
  } catch {
    return '/'
  }
}

/** Returns a path with the home directory in the place of a leading `~`. */
export const withHome = (path: string, environment: Readonly<Record<string, string | undefined>>): string =>
  path.replace(/^~(?=\/|$)/, () => homeDirectory(environment))

/**
 * Returns the absolute path of the folder that a variable names. An empty or a relative value counts as unset.
 * Source: XDG Base Directory Specification.
 */
export function baseDirectory(
  variable: keyof typeof unset,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const named = environment[variable]
  return named !== undefined && isAbsolute(named) ? named : join(homeDirectory(environment), unset[variable])
}
