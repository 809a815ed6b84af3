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
 * Tells systemd that this process is the main one of its service now, and that it is ready. Does nothing outside a
 * service. Never rejects: logs an error if systemd was not reached.
 */
export async function becomeMainProcess(environment: Environment, pid: number, log: Log): Promise<void> {
  if (!environment.NOTIFY_SOCKET) return
  try {
    // Node cannot send datagrams to a Unix socket.
    await promisify(execFile)('systemd-notify', ['--ready', `--pid=${pid}`], { env: environment, timeout: 10_000 })
  } catch (cause) {
    log.error(
      'systemd does not know the new process and may end the service: run systemctl restart infer',
      { pid },
      cause,
    )
  }
}
