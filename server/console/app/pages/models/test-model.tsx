import { useMutation, useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { type Schema, sendJson, tasksQuery } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { durationText } from '../../components/format.ts'
import { Failed, Notice } from '../../components/page.tsx'
import { TaskResult } from '../../components/result/task-result.tsx'
import { modelsText } from '../../text/models.ts'
import { createJob, followJob, type Job } from '../playground/run/runs.ts'
import { type TestJob, type TestRequest, testRequest } from './test-request.ts'

interface Outcome {
  ms: number
  text: string | null
  audio: string | null
  job: Job | null
}

const none = { text: null, audio: null, job: null }

async function runJob(model: string, { task, inputs }: TestJob): Promise<Outcome> {
  const began = performance.now()
  const job = await followJob(await createJob(task, model, inputs))
  if (job.status !== 'completed') throw new Error(job.error?.message ?? modelsText.notTested)
  return { ...none, ms: performance.now() - began, job }
}

async function run({ path, body, read }: TestRequest): Promise<Outcome> {
  const began = performance.now()
  const response = await sendJson(path, body)
  const elapsed = () => performance.now() - began
  if (read) {
    const text = read((await response.json()) as never)
    return { ...none, ms: elapsed(), text }
  }
  const audio = URL.createObjectURL(await response.blob())
  return { ...none, ms: elapsed(), audio }
}

/** The test of a model: a short request, and its answer. */
export function useModelTest(model: Schema<'ModelStatus'>) {
  const tasks = useQuery(tasksQuery)
  const request = testRequest(model, tasks.data?.tasks ?? [])
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => ('path' in request! ? run(request) : runJob(model.model_id, request!)),
  })
  const audio = data?.audio ?? null
  useEffect(() => () => void (audio !== null && URL.revokeObjectURL(audio)), [audio])
  return {
    // Whether there is a test is known with the tasks; a button that came later would move the others.
    button: (request || tasks.isPending) && (
      <Button
        busy={isPending || tasks.isPending}
        aria-label={`${modelsText.test} ${model.model_id}`}
        onClick={() => mutate()}
        label={modelsText.test}
      />
    ),
    outcome: isPending ? (
      <Notice kind="info">{modelsText.testing}</Notice>
    ) : error ? (
      <Failed failure={error} />
    ) : data ? (
      <div className="space-y-3">
        <Notice kind="good">
          <span>
            {modelsText.tested(durationText(data.ms))} {data.text}
          </span>
          {audio !== null && (
            // oxlint-disable-next-line jsx-a11y/media-has-caption
            <audio controls src={audio} aria-label={modelsText.testPrompt} className="h-8" />
          )}
        </Notice>
        {data.job && <TaskResult result={data.job.result} inputs={data.job.inputs} />}
      </div>
    ) : null,
  }
}
