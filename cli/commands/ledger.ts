import type { Command } from '@commander-js/extra-typings'
import { moneyText } from '../../core/money-text.ts'
import { localDirectory } from '../client/find-server.ts'
import { exitCodes } from '../terminal/exit-codes.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** How many rows are checked between two updates of the progress. */
const shownEvery = 100_000

/** `infer ledger verify`: checks the hash chain of the ledger. Exits with 65 when it is broken. */
export function define(command: Command, terminal: Terminal): void {
  const verify = withCommon(command.command('verify'))
    .summary('check that no ledger row was changed')
    .description(
      'Checks the hash chain of the ledger, with or without a running server, and changes nothing. Every finished request and job has a row with its usage and its cost, and each row has the hash of the one before: a changed, missing or moved row is found. Shows the sum of each month in UTC.',
    )
    .action(async ({ dataDir, json }) => {
      const folder = localDirectory(verify, dataDir)
      const { verifyLedger } = await import('../../core/store/sqlite/check.ts')
      const progress = (rows: number) => {
        if (rows % shownEvery === 0) terminal.progress(`Checked ${rows} rows…`)
      }
      const { rows, months, findings } = verifyLedger(folder, progress)
      terminal.progress('')
      const whole = findings.length === 0
      const shown = months.map(({ start, rows: count, cost }) => ({
        month: new Date(start).toISOString().slice(0, 7),
        rows: count,
        cost: cost / 1e6,
      }))
      if (json) terminal.json({ whole, rows, months: shown, findings })
      else {
        if (shown.length > 0)
          terminal.table(
            ['month', 'rows', 'cost'],
            shown.map(one => [one.month, String(one.rows), moneyText(one.cost)]),
          )
        for (const finding of findings) terminal.print(finding)
        if (whole) terminal.print(`The ledger is intact: ${rows} rows.`)
        else terminal.remark(`Restore a backup: infer restore <file> --data-dir ${folder}`)
      }
      if (!whole) terminal.setExitCode(exitCodes.data)
    })
  withExamples(verify, [
    ['infer ledger verify', 'with the sum of each month'],
    ['infer ledger verify --json', 'for a program'],
  ])
  withExamples(command, [['infer ledger verify', 'check that no ledger row was changed']])
}
