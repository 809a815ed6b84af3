import { dirname, resolve } from 'node:path'
import { shellWord } from './try-next.ts'

/** How the user runs this program in a shell. */
export interface OwnCommand {
  /** Returns a command line of this program with these arguments and the same data directory. */
  line: (args: string) => string
  /** The folder in which it must run; undefined for any folder. */
  folder: string | undefined
}

/**
 * Returns the command of the executable; in a checkout the npm script, because `infer` is not installed there and `npx
 * infer` in another folder fetches an unrelated package. `script` is the file that Node runs; `dataDir` is undefined
 * for the default directory.
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
  // Without a slash the shell found it on the PATH.
  const program = packaged ? shellWord(argv0.includes('/') ? resolve(argv0) : argv0) : 'npm run infer --'
  return {
    line: args => `${program} ${args}${flag}`,
    folder: packaged ? undefined : dirname(dirname(resolve(script))),
  }
}
