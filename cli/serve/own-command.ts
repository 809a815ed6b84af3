import { dirname, resolve } from 'node:path'
import { shellWord } from './try-next.ts'

/** How a user calls this program in a shell. */
export interface OwnCommand {
  /** A command line of this program for these arguments, on the same data directory. */
  line: (args: string) => string
  /** The folder in which it must be typed; undefined where any folder will do. */
  folder: string | undefined
}

/**
 * The executable as it is found from any folder; in a checkout its npm script, because nothing named `infer` is installed
 * there and `npx infer` elsewhere fetches a package of somebody else. `script` is the file that Node runs, `dataDir` a
 * directory that is not the usual one.
 */
export function ownCommand({
  packaged,
  argv0,
  script,
  dataDir,
}: {
  packaged: boolean
  argv0: string
  script: string
  dataDir: string | undefined
}): OwnCommand {
  const flag = dataDir === undefined ? '' : ` --data-dir ${shellWord(dataDir)}`
  // Without a slash it was found on the PATH.
  const program = packaged ? shellWord(argv0.includes('/') ? resolve(argv0) : argv0) : 'npm run infer --'
  return {
    line: args => `${program} ${args}${flag}`,
    folder: packaged ? undefined : dirname(dirname(resolve(script))),
  }
}
