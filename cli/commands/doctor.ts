import type { Command } from '@commander-js/extra-typings'
import { dataDirectory } from '../../core/config.ts'
import { drawFinding, drawVerdict, type Finding } from '../doctor/finding.ts'
import { exitCodes } from '../terminal/exit-codes.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer doctor`: checks the installation and the machine. Changes nothing. Exits with 1 when something is broken. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .option('--config <path>', 'the configuration that the server uses')
    .option('--again', 'test the GPU backends again instead of using stored results')
    .action(async ({ dataDir, config, json, again }) => {
      const { runChecks } = await import('../doctor/checks.ts')
      const findings: Finding[] = []
      const width = terminal.isTerminal ? terminal.stdout.columns || 80 : 0
      const checkOptions = {
        dataDir: dataDirectory(dataDir),
        configPath: config,
        environment: terminal.environment,
        retest: again ?? false,
      }
      for await (const finding of runChecks(checkOptions)) {
        findings.push(finding)
        if (!json) terminal.print(drawFinding(finding, terminal.paint, width))
      }
      const healthy = findings.every(({ state }) => state !== 'broken')
      if (json) terminal.json({ healthy, findings })
      else terminal.remark(`\n${drawVerdict(findings)}`)
      if (!healthy) terminal.setExitCode(exitCodes.failed)
    })
  withExamples(command, [
    ['infer doctor', 'what works, what does not, and what to do'],
    ['infer doctor --json', 'for a program'],
  ])
}
