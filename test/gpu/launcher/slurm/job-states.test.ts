import { expect, test } from 'vitest'
import { launchStateOf } from '../../../../gpu/launcher/slurm/job-states.ts'
import { commentIn, type SlurmJob } from '../../../../gpu/launcher/slurm/queue-lines.ts'

const job = (state: string, comment = 'infer 1 srv wkr_1-1', more: Partial<SlurmJob> = {}): SlurmJob => ({
  jobId: '7',
  state,
  reason: 'None',
  node: state === 'PENDING' ? null : 'gpu1',
  endsAt: null,
  comment: commentIn(comment),
  ...more,
})
const runs = 'infer 1 srv wkr_1-1 g5 run 10.0.0.1 40001'
const has = (status: string, reason = '') => `infer 1 srv wkr_1-1 g5 exit ${status} ${reason}`.trim()

test.each<[string, SlurmJob, state: string, status: string | null, reason: string | null]>([
  ['waits', job('PENDING'), 'pending', null, 'It waits for Slurm.'],
  [
    'waits for cards',
    job('PENDING', undefined, { reason: 'Resources' }),
    'pending',
    null,
    'It waits for Slurm: the cards, cores or memory that it needs are in use (Resources).',
  ],
  [
    'waits for a reason with more words',
    job('PENDING', undefined, { reason: 'ReqNodeNotAvail, UnavailableNodes:gpu2' }),
    'pending',
    null,
    'It waits for Slurm: nodes that it needs are drained, down or reserved (ReqNodeNotAvail, UnavailableNodes:gpu2).',
  ],
  [
    'waits for a reason that is not known',
    job('PENDING', undefined, { reason: 'Moon' }),
    'pending',
    null,
    'It waits for Slurm: Moon.',
  ],
  [
    'its node is prepared',
    job('CONFIGURING'),
    'pending',
    null,
    "Its node 'gpu1' is being prepared (Slurm: CONFIGURING).",
  ],
  ['runs', job('RUNNING', runs), 'running', null, null],
  ['runs, and its wrapper has not spoken', job('RUNNING'), 'running', null, null],
  ['a state that is not known', job('DREAMING', runs), 'running', null, null],
  ['suspended', job('SUSPENDED', runs), 'running', null, null],
  ['its engine has ended', job('RUNNING', has('3')), 'ending', null, null],
  ['ends', job('COMPLETING', runs), 'ending', null, null],
  ['ended well', job('COMPLETED', has('0')), 'gone', '0', 'It has exited with status 0.'],
  ['ended badly', job('FAILED', has('3')), 'gone', '3', 'It has exited with status 3.'],
  ['was killed', job('FAILED', has('SIGKILL')), 'gone', 'SIGKILL', 'It was ended by SIGKILL.'],
  [
    'was refused on its node',
    job('FAILED', has('127', "The program 'x' is missing.")),
    'gone',
    '127',
    "The program 'x' is missing.",
  ],
  ['its wrapper was killed', job('FAILED', runs), 'gone', null, null],
  ['cancelled', job('CANCELLED', has('0')), 'gone', '0', 'Its Slurm job was cancelled.'],
  ['its time is over', job('TIMEOUT', has('0')), 'gone', '0', 'The time limit of its Slurm job was reached.'],
  ['preempted', job('PREEMPTED', runs), 'gone', null, 'Slurm gave its cards to a job of higher priority.'],
  ['its node failed', job('NODE_FAIL', runs), 'gone', null, "Its node 'gpu1' has failed."],
  [
    'one of its nodes failed',
    job('NODE_FAIL', runs, { node: 'gpu[1-2]' }),
    'gone',
    null,
    "One of its nodes 'gpu[1-2]' has failed.",
  ],
  [
    'too much memory',
    job('OUT_OF_MEMORY', runs),
    'gone',
    'SIGKILL',
    'It used more main memory than its Slurm job had.',
  ],
  ['queued again', job('PENDING', runs), 'gone', null, 'Slurm has queued its job again.'],
  ['queued again after its end', job('PENDING', has('0')), 'gone', '0', 'Slurm has queued its job again.'],
])('%s', (_name, one, state, status, reason) => {
  expect(launchStateOf(one)).toEqual({ state, status, reason })
})
