import type { Command } from 'commander'
import { dataDirectory } from '../../core/config.ts'
import { drawFinding, drawVerdict, type Finding } from '../doctor/finding.ts'
import { exitCodes } from '../exit-codes.ts'
import { withDataDir, withExamples, withJson } from '../options.ts'
import type { Terminal } from '../terminal.ts'

/** `infer doctor`: what is fine, what is not, what to do. Changes nothing. Ends with 1 when something is broken. */
export function define(command: Command, terminal: Terminal): void {
  withDataDir(withJson(command))
    .option('--config <path>', 'the configuration that the server is started with')
    .action(async ({ dataDir, config, json }: { dataDir?: string; config?: string; json?: boolean }) => {
      const { examine } = await import('../doctor/checks.ts')
      const findings: Finding[] = []
      const wanted = { dataDir: dataDirectory(dataDir), configPath: config, environment: terminal.environment }
      for await (const finding of examine(wanted)) {
        findings.push(finding)
        if (!json) terminal.print(drawFinding(finding, terminal.paint))
      }
      const healthy = findings.every(({ state }) => state !== 'broken')
      if (json) terminal.json({ healthy, findings })
      else terminal.remark(`\n${drawVerdict(findings)}`)
      if (!healthy) terminal.leaveWith(exitCodes.failed)
    })
  withExamples(command, [
    ['infer doctor', 'what is fine, what is not, what to do'],
    ['infer doctor --json', 'for a program'],
  ])
}
