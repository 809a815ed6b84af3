import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../../gpu/launcher/address.ts'
import { descendantsOf, sendSignal } from '../../../../gpu/launcher/processes.ts'
import { findProgram } from '../../../../gpu/sandbox/program.ts'
import { until } from '../_launch.ts'

const path = `${process.env.PATH}:/usr/sbin:/sbin`

/** Why no cluster can be started here; undefined if one can. */
export const noLab: string | undefined = ((): string | undefined => {
  const missing = ['munged', 'slurmctld', 'slurmd', 'sbatch', 'python3'].find(name => !findProgram(name, path))
  if (missing) return `${missing} is not installed`
  return process.getuid?.() === 0 ? undefined : 'slurmd reads the environment of users as root only'
})()

export type Lab = Awaited<ReturnType<typeof startLab>>

/** Starts a Slurm cluster on loopback: three nodes with two cards each, which are /dev/null. */
export async function startLab() {
  const folder = mkdtempSync('/tmp/infer-slurm-')
  chmodSync(folder, 0o755)
  for (const name of ['state', 'spool', 'log', 'dev', 'munge', 'bin']) mkdirSync(join(folder, name))
  const ports = await Promise.all([1, 2, 3, 4].map(freePort))
  const configuration = join(folder, 'slurm.conf')
  for (const index of [0, 1]) symlinkSync('/dev/null', join(folder, `dev/nvidia${index}`))
  writeFileSync(join(folder, 'munge/munge.key'), randomBytes(128), { mode: 0o600 })
  writeFileSync(join(folder, 'gres.conf'), `NodeName=gpu[1-3] Name=gpu File=${folder}/dev/nvidia[0-1]\n`)
  // With v1 named and no plugin of cgroups in use, slurmd starts where it may not change them.
  writeFileSync(join(folder, 'cgroup.conf'), 'CgroupPlugin=cgroup/v1\n')
  writeFileSync(configuration, configurationIn(folder, ports))
  const env = { ...process.env, PATH: path, SLURM_CONF: configuration }
  const daemons = new Map<string, ChildProcess>()

  function begin(name: string, program: string, ...args: string[]): void {
    daemons.set(name, spawn(program, args, { env, stdio: 'ignore', detached: true }))
  }
  const kill = async (name: string, signal: NodeJS.Signals) => {
    const daemon = daemons.get(name)
    if (!daemon || daemon.exitCode !== null || daemon.signalCode !== null) return
    const gone = once(daemon, 'exit')
    daemon.kill(signal)
    await gone
  }
  const controller = () => begin('slurmctld', 'slurmctld', '-D', '-f', configuration)
  const node = (name: string) => begin(name, 'slurmd', '-D', '-N', name, '-f', configuration)
  const run = (program: string, ...args: string[]): string =>
    execFileSync(program, args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
  const isUp = (): boolean => {
    try {
      return run('sinfo', '-h', '-p', 'gpu', '-N', '-t', 'idle', '-o', '%N').split('\n').length === 3
    } catch {
      return false
    }
  }

  const socket = join(folder, 'munge/socket')
  const munge = ['key-file=munge.key', 'socket=socket', 'pid-file=pid', 'log-file=log', 'seed-file=seed']
  begin(
    'munged',
    'munged',
    '--foreground',
    '--force',
    ...munge.map(one => `--${one.replace('=', `=${folder}/munge/`)}`),
  )
  await until(() => existsSync(socket))
  controller()
  for (const name of ['gpu1', 'gpu2', 'gpu3']) {
    mkdirSync(join(folder, 'spool', name))
    node(name)
  }
  await until(isUp)

  return {
    folder,
    env,
    /** Runs a command of Slurm; what it prints. */
    run,
    kill,
    controller,
    node,
    /**
     * Kills a node with all that runs there: slurmd, what it has started for jobs, and what these have started. Slurm notices it
     * seconds later; it can be started again with `node`.
     */
    async failNode(name: string): Promise<void> {
      const jobIds = run('squeue', '-h', '-w', name, '-t', 'running', '-o', '%i').split('\n').filter(Boolean)
      const steps = jobIds.flatMap(jobId => processesNamed(`slurmstepd: [${jobId}.`))
      const all = [...steps, ...(await Promise.all(steps.map(descendantsOf))).flat()]
      await kill(name, 'SIGKILL')
      for (const pid of all) sendSignal(pid, 'SIGKILL')
    },
    /** Resolves when the node that was started again may run jobs. Slurm shows it as `mixed` for up to a minute after its last one. */
    returned: (name: string) =>
      until(() => /^(idle|mixed)$/.test(run('sinfo', '-h', '-n', name, '-p', 'gpu', '-o', '%T'))),
    /** Resolves when slurmctld, which saves what it knows every few seconds, has saved what it knows of a running job. */
    async saved(jobId: string): Promise<void> {
      const since = Date.now()
      run('scontrol', 'update', `JobId=${jobId}`, 'Nice=1')
      await until(() => statSync(join(folder, 'state/job_state')).mtimeMs > since)
    },
    /** What an administrator would see of a job of the launch. */
    jobOf: (launchId: string) =>
      run('squeue', '-h', '-t', 'all', '-o', '%i|%T|%r|%k')
        .split('\n')
        .map(line => line.split('|'))
        .find(words => words[3]?.includes(launchId)),
    async close(): Promise<void> {
      try {
        run('scancel', '-u', userInfo().username)
        await until(() => run('squeue', '-h') === '')
      } catch {
        // slurmctld was killed by the test.
      }
      for (const name of [...daemons.keys()].reverse()) await kill(name, 'SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The processes whose command line begins so. */
const processesNamed = (beginning: string): number[] =>
  readdirSync('/proc').flatMap(name =>
    /^\d+$/.test(name) && textOf(`/proc/${name}/cmdline`).startsWith(beginning) ? [Number(name)] : [],
  )

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

const configurationIn = (folder: string, [control, ...nodes]: number[]): string => `
ClusterName=lab
SlurmctldHost=${hostname().split('.')[0]}(127.0.0.1)
SlurmctldPort=${control}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket=${folder}/munge/socket
SlurmUser=${userInfo().username}
SlurmdUser=${userInfo().username}
StateSaveLocation=${folder}/state
SlurmdSpoolDir=${folder}/spool/%n
SlurmctldPidFile=${folder}/slurmctld.pid
SlurmdPidFile=${folder}/slurmd.%n.pid
SlurmctldLogFile=${folder}/log/slurmctld
SlurmdLogFile=${folder}/log/slurmd.%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SlurmctldTimeout=5
SlurmdTimeout=5
KillWait=8
MinJobAge=300
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
${nodes.map((port, index) => `NodeName=gpu${index + 1} NodeHostname=${hostname().split('.')[0]} NodeAddr=127.0.0.1 Port=${port} CPUs=64 RealMemory=100000 Gres=gpu:2 State=UNKNOWN`).join('\n')}
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=10
PartitionName=scavenge Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE
`
