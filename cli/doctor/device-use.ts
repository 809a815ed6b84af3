import { remoteServer } from '../../core/config.ts'
import { openLog } from '../../core/log.ts'
import type { Device } from '../../gpu/devices/device.ts'
import { runningPrograms } from '../../gpu/pauses/programs.ts'
import { type PauseRule, pausedBy, ruleState } from '../../gpu/pauses/rules.ts'
import { openStoredRules } from '../../gpu/pauses/stored-rules.ts'
import { type Api, openClient } from '../client/client.ts'
import { runningServer } from '../client/find-server.ts'
import { whenText } from '../status/pause-text.ts'
import { timeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import { type Finding, warning } from './finding.ts'

type Pause = Pick<Api['DevicePause'], 'until' | 'when' | 'schedule' | 'configured' | 'paused_devices' | 'ends_at'>

/** Which devices are not used now, and why. */
export interface DeviceUse {
  pauses: readonly Pause[]
  /** Cards with a fault, by id; the sentences do not name them. */
  faults: readonly { id: string; reason: string }[]
}

/** Milliseconds for the answer of the server. */
const timeoutMs = 3_000

/** Asks the running server of the data directory; without one, reads the pauses that are stored. */
export async function deviceUse(dataDir: string, devices: readonly Pick<Device, 'id' | 'kind'>[]): Promise<DeviceUse> {
  if (remoteServer() === undefined && runningServer(dataDir)) {
    const { api } = openClient(dataDir)
    const answer = await api.GET('/api/gpu', { signal: AbortSignal.timeout(timeoutMs) }).catch(() => undefined)
    if (answer?.data)
      return {
        pauses: answer.data.pauses,
        faults: answer.data.devices.flatMap(({ id, fault }) => (fault === null ? [] : [{ id, reason: fault }])),
      }
  }
  const rules = openStoredRules({ dataDir, log: openLog('error', () => {}) }).read()
  const programs = rules.flatMap(({ process }) => process ?? [])
  const running = programs.length > 0 ? await runningPrograms(programs, []) : new Set<string>()
  const facts = { now: Date.now(), devices, running }
  return { pauses: rules.map(rule => storedPause(rule, facts)), faults: [] }
}

function storedPause(rule: PauseRule, facts: Parameters<typeof pausedBy>[1]): Pause {
  const { until, process, schedule, isConfigured } = rule
  const seconds = (ms: number | null) => (ms === null ? null : Math.ceil(ms / 1_000))
  return {
    until: seconds(until),
    when: process === null ? null : `process:${process}`,
    schedule: schedule && { cron: schedule.cron, timezone: schedule.timezone, for: Math.round(schedule.forMs / 1_000) },
    configured: isConfigured,
    paused_devices: pausedBy(rule, facts),
    ends_at: seconds(ruleState(rule, facts).endsAt),
  }
}

/** Names the devices that are not used; undefined if all are. `named`: ids of cards that another finding has named. */
export function checkDeviceUse({ pauses, faults }: DeviceUse, named: readonly string[] = []): Finding | undefined {
  const paused = pauses.flatMap(pause =>
    pause.paused_devices.map(id => {
      const when = whenText(pause)
      const now = pause.schedule !== null && pause.ends_at !== null
      return `${id} is paused ${now ? `until ${timeText(pause.ends_at! * 1_000)}: ` : ''}${when}`
    }),
  )
  const lost = faults
    .filter(({ id }) => !named.includes(id))
    .map(({ id, reason }) => `${id} is not used: ${reason.replace(/\.$/, '')}`)
  if (paused.length + lost.length === 0) return undefined
  const advice = [
    ...(lost.length > 0 ? ['Run nvidia-smi and repair what it reports.'] : []),
    ...(paused.length > 0 ? ['To use paused devices now: infer gpu resume'] : []),
  ]
  return warning('GPU use', [...lost, ...paused].map(printable).join('; '), advice.join(' '))
}
