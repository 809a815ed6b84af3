import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { localDirectory } from '../client/find-server.ts'
import { CommandFailure, exitCodes, usageFailure } from '../terminal/exit-codes.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer backup <file>`: writes a complete, verified snapshot of the database while the server runs. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .description(
      'Copies the database to a new file and verifies it, while the server runs. Stored files (uploads, images, videos) are included with --files only.',
    )
    .argument('<file>', 'a new file')
    .option('--files <folder>', 'also copy the stored files, to this new folder')
    .action(async (file, { files: to, dataDir, json }) => {
      const folder = localDirectory(command, dataDir)
      if (to !== undefined && existsSync(to))
        throw usageFailure(`The folder ${to} exists already. Choose a new one for the files.`)
      const { backupDatabase } = await import('../../core/store/sqlite/admin.ts')
      const { bytes } = await backupDatabase(folder, file, (done, total) =>
        terminal.progress(`Copying ${Math.floor((100 * done) / Math.max(1, total))} %`),
      ).finally(() => terminal.progress(''))
      const files = to === undefined ? null : await copyStoredFiles(terminal, { folder, file, to })
      if (json) return terminal.json({ file: resolve(file), bytes, files })
      terminal.print(`Copied ${sizeText(bytes)} to ${file} and verified it.`)
      if (files) terminal.print(`Copied ${files.count} stored files, ${sizeText(files.bytes)}, to ${to}.`)
      else terminal.remark('Stored files are not included. Include them with --files <folder>.')
      terminal.remark(`Keep ${join(folder, 'master-key')} too: without it no token in the backup works.`)
    })
  withExamples(command, [
    ['infer backup /backups/infer-monday.db', 'while the server runs'],
    ['infer backup copy.db --files copy-files', 'with uploads, images and videos'],
    ['infer backup copy.db --data-dir /var/lib/infer', 'the database of a service'],
  ])
}

async function copyStoredFiles(
  terminal: Terminal,
  { folder, file, to }: { folder: string; file: string; to: string },
): Promise<{ folder: string; count: number; bytes: number; missing: number }> {
  const { storedFilesIn } = await import('../../core/store/sqlite/admin.ts')
  const { copyFiles } = await import('../../core/files/copy-files.ts')
  try {
    const onProgress = (done: number, total: number) => terminal.progress(`Copying file ${done} of ${total}`)
    const copied = await copyFiles({ dataDir: folder, files: storedFilesIn(file), to, onProgress })
    return { folder: resolve(to), ...copied }
  } catch (cause) {
    const { message } = cause as Error
    throw new CommandFailure(
      exitCodes.io,
      'invalid_value',
      `The stored files were not copied to ${to}: ${message}. The database was copied to ${file}.`,
      { cause },
    )
  } finally {
    terminal.progress('')
  }
}
