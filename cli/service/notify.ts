import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Log } from '../../core/log.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Whether systemd started this process as a service and would end the service with it: its unit does not let another
 * process become the main one. `pid`: of this process.
 */
export const isBoundToUnit = ({ SYSTEMD_EXEC_PID, NOTIFY_SOCKET }: Environment, pid: number): boolean =>
  SYSTEMD_EXEC_PID === String(pid) && !NOTIFY_SOCKET

/**
 * Tells systemd that this process is ready, and is the main one of its service from now on, as after a take-over. Does
 * nothing outside a service. Never rejects: logs an error if systemd was not reached.
 */
export async function notifyReady(environment: Environment, pid: number, log: Log): Promise<void> {
  if (!environment.NOTIFY_SOCKET) return
  try {
    // Node cannot send datagrams to a Unix socket.
    await promisify(execFile)('systemd-notify', ['--ready', `--pid=${pid}`], { env: environment, timeout: 10_000 })
  } catch (cause) {
    log.error(
      'systemd was not told that this process is ready, and may end the service: check that systemd-notify is installed, then run systemctl restart infer',
      { pid },
      cause,
    )
  }
}
