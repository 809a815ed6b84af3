import { useEffect, useRef, useState } from 'react'
import { Empty, Section } from '../../../components/page.tsx'
import { playgroundText } from '../../../text/playground.ts'
import { type PanelProps, RequestForm, RunButton, TaskForm, useForm } from '../form/task-form.tsx'
import { Samples } from '../samples-view.tsx'
import { StopButton } from './composer.tsx'
import { emptyAnswer, type Message } from './conversation.ts'
import { MessageView } from './message-view.tsx'
import { streamAnswer } from './use-conversation.ts'

/** Continues a text with one model or with two, as they write it. */
export function Completion(props: PanelProps) {
  const { task, models } = props
  const { form, request, check } = useForm(props, 'n', 'best_of')
  const [answers, setAnswers] = useState<readonly Message[]>([])
  const [busy, setBusy] = useState(false)
  const stop = useRef<AbortController>(undefined)
  useEffect(() => () => stop.current?.abort(), [])

  async function run(): Promise<void> {
    if (!check()) return
    const { signal } = (stop.current = new AbortController())
    setBusy(true)
    setAnswers(models.map(() => emptyAnswer))
    const set = (at: number) => (answer: Message) => setAnswers(now => now.with(at, answer))
    await Promise.all(
      models.map(({ id }, at) =>
        streamAnswer(task.path!, { model: id, ...request }, set(at), signal)
          .catch((failure: Error): Message => ({ ...emptyAnswer, failure: failure.message }))
          .then(set(at)),
      ),
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
            {answers.slice(0, models.length).map((answer, at) => (
              <div key={at} className="bg-surface border-line min-w-0 rounded-lg border">
                <MessageView
                  message={answer}
                  model={models[at]!.id}
                  currency={models[at]!.currency}
                  growing={busy && answer.figures?.outputTokens === undefined && !answer.failure}
                />
              </div>
            ))}
          </div>
        </Section>
        <Samples task={task} model={models[0]!.id} inputs={request} />
      </div>
    </div>
  )
}
