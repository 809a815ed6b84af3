import type { Command } from 'commander'
import { dataDirectory } from '../../core/config.ts'
import { drawFinding, drawVerdict, type Finding } from '../doctor/finding.ts'
import { exitCodes } from '../exit-codes.ts'
import { withDataDir, withExamples, withJson } from '../options.ts'
import type { Terminal } from '../terminal.ts'

interface Options {
  dataDir?: string
  config?: string
  json?: boolean
  again?: boolean
}

/** `infer doctor`: what is fine, what is not, what to do. Changes nothing. Ends with 1 when something is broken. */
export function define(command: Command, terminal: Terminal): void {
  withDataDir(withJson(command))
    .option('--config <path>', 'the configuration that the server is started with')
    .option('--again', 'try the backends for GPUs again instead of believing what was found out before')
    .action(async ({ dataDir, config, json, again }: Options) => {
      const { runChecks } = await import('../doctor/checks.ts')
      const findings: Finding[] = []
      const width = terminal.isTerminal ? terminal.stdout.columns || 80 : 0
      const wanted = {
        dataDir: dataDirectory(dataDir),
        configPath: config,
        environment: terminal.environment,
        again: again ?? false,
      }
      for await (const finding of runChecks(wanted)) {
        findings.push(finding)
        if (!json) terminal.print(drawFinding(finding, terminal.paint, width))
      }
      const healthy = findings.every(({ state }) => state !== 'broken')
      if (json) terminal.json({ healthy, findings })
      else terminal.remark(`\n${drawVerdict(findings)}`)
      if (!healthy) terminal.setExitCode(exitCodes.failed)
    })
  withExamples(command, [
    ['infer doctor', 'what is fine, what is not, what to do'],
    ['infer doctor --json', 'for a program'],
  ])
}
