import type { Command } from '@commander-js/extra-typings'
import { dataDirectory } from '../../core/config.ts'
import { drawFinding, drawVerdict, type Finding } from '../doctor/finding.ts'
import { exitCodes, usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/**
 * `infer doctor`: checks the installation and the machine, or a pool. Changes nothing without `--fix`, except that a pool gets
 * a short trial job, and a machine that is reached by ssh the executable. Exits with 1 when something is broken.
 */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .option('--config <path>', 'the configuration that the server uses')
    .option('--again', 'test all GPU backends again, also those that worked')
    .option('--fix', 'offer what infer can repair itself: the backend for GPUs')
    .option('--pool <name>', 'check a pool of infer.yaml instead of this machine')
    .action(async ({ dataDir, config, json, again, fix, pool }) => {
      if (pool !== undefined && (fix || again))
        throw usageFailure('--fix and --again are for this machine, not for a pool. Leave them out.')
      if (fix && json) throw usageFailure('--fix asks questions, which --json does not. Leave one of them out.')
      const { runChecks, runPoolChecks } = await import('../doctor/checks.ts')
      const findings: Finding[] = []
      const width = terminal.isTerminal ? terminal.stdout.columns || 80 : 0
      const checkOptions = {
        dataDir: dataDirectory(dataDir),
        configPath: config,
        environment: terminal.environment,
        retest: again ?? false,
      }
      const checks = pool === undefined ? runChecks(checkOptions) : runPoolChecks(pool, checkOptions)
      for await (const finding of checks) {
        findings.push(finding)
        if (!json) terminal.print(drawFinding(finding, terminal.paint, width))
      }
      const healthy = findings.every(({ state }) => state !== 'broken')
      if (json) terminal.json({ healthy, findings })
      else terminal.remark(`\n${drawVerdict(findings)}`)
      if (fix) {
        const { offerGpu } = await import('../engines/offer-gpu.ts')
        const offer = { dataDir: checkOptions.dataDir, again: true }
        await interruptible(terminal, signal => offerGpu(offer, terminal, signal))
      }
      if (!healthy) terminal.setExitCode(exitCodes.failed)
    })
  withExamples(command, [
    ['infer doctor', 'what works, what does not, and what to do'],
    ['infer doctor --fix', 'and offer the backend for GPUs, if it is missing'],
    ['infer doctor --pool lab', 'check a cluster, or a machine that is reached by ssh'],
    ['infer doctor --json', 'for a program'],
  ])
}
