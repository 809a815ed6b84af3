import { openGenerationRunner } from '../../core/tasks/generation/run.ts'
import type { RunTask } from '../../core/tasks/run-job.ts'
import { openTextRunner } from '../../core/tasks/run-text.ts'
import { openSpeechRunner } from '../../core/tasks/speech/run-speech.ts'
import { openStepRunner } from '../../core/tasks/steps/run-step.ts'
import type { RunnerName } from '../../core/tasks/task.ts'
import { openTranscriptionRunner } from '../../core/tasks/transcription/run-transcription.ts'

type Needs = Parameters<typeof openTextRunner>[0] &
  Parameters<typeof openSpeechRunner>[0] &
  Parameters<typeof openTranscriptionRunner>[0] &
  Parameters<typeof openGenerationRunner>[0] & { cpu: Parameters<typeof openStepRunner>[0]; waits: { run: RunTask } }

/** Opens the runner of each kind of task. */
export const openTaskRunners = (needs: Needs): Record<RunnerName, RunTask> => ({
  text: openTextRunner(needs),
  speech: openSpeechRunner(needs),
  transcription: openTranscriptionRunner(needs),
  generation: openGenerationRunner(needs),
  step: openStepRunner(needs.cpu),
  wait: needs.waits.run,
})
