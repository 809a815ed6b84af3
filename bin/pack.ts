import { homedir } from 'node:os'
import { packExecutable } from './executable.ts'
import { install, installFolder } from './install.ts'
import { targets } from './target.ts'

/**
 * Packs dist/ into build/infer, one executable for Linux on x64, and prints one line; with `--install [folder]` also
 * copies it to a folder of the user.
 */
const folder = installFolder(process.argv.slice(2), homedir())
process.stdout.write(`${await packExecutable(targets.x64)}\n`)
process.stdout.write(
  folder === undefined
    ? 'Copy it to ~/.local/bin with: npm run pack -- --install\n'
    : `${install(targets.x64.executable, folder, process.env.PATH ?? '')}\n`,
)
