import type { Command } from '@commander-js/extra-typings'
import { localDirectory } from '../client/find-server.ts'
import { exitCodes } from '../terminal/exit-codes.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'

const stepTexts = {
  structure: 'Checking the structure',
  ledger: 'Checking the hash chain of the ledger',
  usage: 'Comparing sums of usage and ledger',
  references: 'Checking references',
  jobs: 'Comparing jobs, events and ledger',
  executions: 'Comparing executions, nodes and jobs',
  files: 'Comparing files and library',
} as const

/** `infer db check`: looks for damage, with or without a running server. Exits with 65 when there is some. */
export function define(command: Command, terminal: Terminal): void {
  const check = withCommon(command.command('check'))
    .summary('look for damage')
    .description(
      'Looks for damage, with or without a running server, and changes nothing. Checks the structure, the hash chain of the ledger and the references between tables.',
    )
    .option('--quick', 'structure and ledger only')
    .action(async ({ dataDir, json, quick }) => {
      const folder = localDirectory(check, dataDir)
      const { checkDatabase } = await import('../../core/store/sqlite/admin.ts')
      const report = await checkDatabase(folder, {
        quick: quick === true,
        onStep: step => terminal.progress(`${stepTexts[step]}…`),
      }).finally(() => terminal.progress(''))
      const { findings, schema, bytes, jobs, events, files, videos, ledgerRows } = report
      if (json)
        terminal.json({
          whole: findings.length === 0,
          findings,
          schema,
          bytes,
          jobs,
          events,
          files,
          videos,
          ledger_rows: ledgerRows,
        })
      else if (findings.length === 0)
        terminal.print(
          `The database is intact: ${sizeText(bytes)}, schema ${schema}, ${ledgerRows} ledger rows${quick ? '' : `, ${jobs} jobs, ${files} files`}.`,
        )
      else {
        for (const finding of findings) terminal.print(finding)
        terminal.remark(`Restore a backup: infer restore <file> --data-dir ${folder}`)
      }
      if (findings.length > 0) terminal.setExitCode(exitCodes.data)
    })
  withExamples(check, [
    ['infer db check', 'everything'],
    ['infer db check --quick --json', 'structure and ledger, for a program'],
  ])
  withExamples(command, [['infer db check', 'look for damage']])
}
