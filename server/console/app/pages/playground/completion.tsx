import { useEffect, useRef, useState } from 'react'
import { Empty, Section } from '../../components/page.tsx'
import { randomId } from '../../components/random-id.ts'
import { playgroundText } from '../../text/playground.ts'
import { emptyAnswer } from '../chat/message/chunks.ts'
import type { Message } from '../chat/message/message.ts'
import { MessageView } from '../chat/message/message-view.tsx'
import { StopButton } from '../chat/message/stop-button.tsx'
import { streamAnswer } from '../chat/message/stream-answer.ts'
import { type PanelProps, RequestForm, RunButton, TaskForm, useForm } from './form/task-form.tsx'
import { useKept } from './kept.ts'
import { Samples } from './samples-view.tsx'

/** Continues a text with one model or with two, as they write it. */
export function Completion(props: PanelProps) {
  const { task, models, origin } = props
  const { form, request, check } = useForm(props, 'n', 'best_of')
  const [answers, setAnswers] = useKept<readonly Message[]>(task.id, 'answers', origin, () => [])
  const [busy, setBusy] = useState(false)
  const stop = useRef<AbortController>(undefined)
  useEffect(() => () => stop.current?.abort(), [])

  async function run(): Promise<void> {
    if (!check()) return
    const { signal } = (stop.current = new AbortController())
    setBusy(true)
    setAnswers(models.map(({ id: model, currency }) => ({ ...emptyAnswer, model, currency })))
    await Promise.all(
      models.map(({ id: model, currency }, at) => {
        const set = (answer: Message) => setAnswers(now => now.with(at, { ...answer, model, currency }))
        // If the page is left meanwhile, what was written so far is a stopped answer.
        const report = (answer: Message) => set({ ...answer, stopped: true })
        return streamAnswer({ path: task.path!, body: { model, ...request }, key: randomId() }, { report, signal })
          .catch((failure: Error): Message => ({ ...emptyAnswer, failure: failure.message }))
          .then(set)
      }),
    )
    setBusy(false)
  }

  return (
    <div className="grid gap-6 lg:grid-cols-2">
      <RequestForm run={() => void run()}>
        <TaskForm {...form} />
        {busy ? <StopButton stop={() => stop.current?.abort()} /> : <RunButton models={models} />}
      </RequestForm>
      <div className="min-w-0">
        <Section title={playgroundText.result}>
          {answers.length === 0 && <Empty title={playgroundText.none} />}
          <div className={`grid gap-3 ${answers.length > 1 ? 'md:grid-cols-2' : ''}`}>
            {answers.map((answer, at) => {
              const growing = busy && answer.figures?.outputTokens === undefined && !answer.failure
              return (
                <div key={at} className="bg-surface border-line min-w-0 rounded-lg border">
                  <MessageView
                    message={growing ? { ...answer, stopped: undefined } : answer}
                    model={models[0]!.id}
                    currency={models[0]!.currency}
                    growing={growing}
                    plain
                  />
                </div>
              )
            })}
          </div>
        </Section>
        <Samples task={task} model={models[0]!.id} inputs={request} />
      </div>
    </div>
  )
}
