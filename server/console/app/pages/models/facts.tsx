import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Schema } from '../../api/client.ts'
import { useSession } from '../../api/session.ts'
import { countText, durationText, sizeText } from '../../components/format.ts'
import { ModelStateView } from '../../components/model-state.tsx'
import { modelsText, modelText } from '../../text/models.ts'
import { tasksText } from '../../text/tasks.ts'
import { priceTexts } from './price.ts'

const { facts: names } = modelsText

/** What a model is, needs, costs, and does now. */
export function ModelFactList({ model }: { model: Schema<'ModelStatus'> }) {
  const { context_length: context, memory_bytes: memory, eta_seconds: eta } = model
  const { can } = useSession()
  const prices = priceTexts(model.price)
  const waiting = modelsText.queue(model.queue_depth)
  const facts: readonly [name: string, value: ReactNode][] = [
    [names.state, <ModelStateView key="state" status={model.status} reason={model.reason} />],
    [
      names.queue,
      model.queue_depth > 0 && eta ? `${waiting}. ${modelText.expected(durationText(eta * 1_000))}` : waiting,
    ],
    [names.tasks, tasksText(model.tasks)],
    [names.engine, model.engine],
    [names.memory, memory === null ? modelsText.unknown : sizeText(memory)],
    [names.context, context === null ? null : modelsText.tokens(countText(context))],
    [names.price, prices.length === 0 ? modelsText.free : prices.join(', ')],
    [names.region, model.region],
    [names.features, model.capabilities.map(one => one.replaceAll('_', ' ')).join(', ')],
    [names.slug, model.slug],
  ]
  return (
    <>
      <dl className="border-line bg-surface divide-line mb-4 divide-y rounded-lg border">
        {facts
          .filter(([, value]) => value !== null && value !== '')
          .map(([name, value]) => (
            <div key={name} className="grid gap-x-4 px-3 py-2 md:grid-cols-[10rem_1fr]">
              <dt className="text-muted">{name}</dt>
              <dd className="min-w-0 break-words">{value}</dd>
            </div>
          ))}
      </dl>
      {can('user:write') && (
        <p className="mb-6">
          <Link
            href={`/playground?model=${encodeURIComponent(model.model_id)}`}
            className="text-accent hover:underline"
          >
            {modelsText.playground}
          </Link>
        </p>
      )}
    </>
  )
}
