import { useMutation } from '@tanstack/react-query'
import { useEffect } from 'react'
import { type Schema, send } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Failed } from '../../components/failed.tsx'
import { durationText } from '../../components/format.ts'
import { Notice } from '../../components/notice.tsx'
import { modelsText } from '../../text/models.ts'
import { type TestRequest, testRequest } from './test-request.ts'

interface Outcome {
  ms: number
  text: string | null
  audio: string | null
}

async function run({ path, body, read }: TestRequest): Promise<Outcome> {
  const began = performance.now()
  const response = await send(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const elapsed = () => performance.now() - began
  if (read) {
    const text = read((await response.json()) as never)
    return { ms: elapsed(), text, audio: null }
  }
  const audio = URL.createObjectURL(await response.blob())
  return { ms: elapsed(), text: null, audio }
}

/** The test of a model: a short request, and its answer. */
export function useModelTest(model: Schema<'ModelStatus'>) {
  const request = testRequest(model)
  const { mutate, data, error, isPending } = useMutation({ mutationFn: () => run(request!) })
  const audio = data?.audio ?? null
  useEffect(() => () => void (audio !== null && URL.revokeObjectURL(audio)), [audio])
  return {
    button: request && (
      <Button busy={isPending} aria-label={modelsText.testOf(model.model_id)} onClick={() => mutate()}>
        {modelsText.test}
      </Button>
    ),
    outcome: error ? (
      <Failed failure={error} />
    ) : data ? (
      <Notice kind="good">
        <span>
          {modelsText.tested(durationText(data.ms))} {data.text}
        </span>
        {audio !== null && (
          // oxlint-disable-next-line jsx-a11y/media-has-caption
          <audio controls src={audio} aria-label={modelsText.testPrompt} className="h-8" />
        )}
      </Notice>
    ) : null,
  }
}
