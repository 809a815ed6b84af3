import { useMutation } from '@tanstack/react-query'
import { ArrowRight, Bot, Image, type LucideIcon, Network } from 'lucide-react'
import { useLocation } from 'wouter'
import { api, dataOf, refresh, sendJson, useSession } from '../../api/client.ts'
import { announce } from '../../components/announcements.tsx'
import { BusyBar } from '../../components/button.tsx'
import { Section } from '../../components/page.tsx'
import { firstStepsText as text } from '../../text/first-steps.ts'
import bodies from './first-steps.json' with { type: 'json' }

/** Whether a model is one of those inside the executable, which are for a first try. */
const isIncluded = (id: string): boolean => id.startsWith('infer/')

/** What can be done first, each by one click, as long as only the included models are there. */
export function FirstSteps({ models }: { models: readonly { model_id: string }[] }) {
  const { can, ownerCan } = useSession()
  if (models.length === 0 || !models.every(({ model_id: id }) => isIncluded(id))) return null
  const has = (id: string) => models.some(({ model_id }) => model_id === id)
  const write = can('user:write')
  return (
    <Section title={text.title}>
      <div className="grid gap-3 md:grid-cols-3">
        {ownerCan('admin:write') && <Step icon={Bot} words={text.starter} act={addStarter} />}
        {write && has('infer/demo') && <Step icon={Image} words={text.image} act={makeImage} />}
        {write && has('infer/demo') && has('infer/tiny-chat') && has('infer/tiny-speech') && (
          <Step icon={Network} words={text.workflow} act={runWorkflow} />
        )}
      </div>
    </Section>
  )
}

interface StepProps {
  icon: LucideIcon
  words: { name: string; about: string }
  /** Does it, and resolves with the address of the page that shows it. */
  act: () => Promise<string>
}

function Step({ icon: Icon, words: { name, about }, act }: StepProps) {
  const [, go] = useLocation()
  const { mutate, isPending } = useMutation({
    mutationFn: act,
    onSuccess: address => go(address),
    onError: failure => announce('bad', failure.message),
  })
  return (
    <button
      type="button"
      aria-disabled={isPending}
      aria-busy={isPending}
      onClick={() => isPending || mutate()}
      className="group border-line bg-surface hover:border-accent relative flex flex-col gap-2 overflow-hidden rounded-lg border p-4 text-left shadow-xs"
    >
      <span className="bg-accent-soft text-accent grid size-9 place-items-center rounded-md">
        <Icon aria-hidden className="size-5" />
      </span>
      <span className="flex items-center gap-1.5 text-base font-medium">
        {name}
        <ArrowRight aria-hidden className="text-muted group-hover:text-accent size-4" />
      </span>
      <span className="text-muted text-xs">{about}</span>
      {isPending && <BusyBar />}
    </button>
  )
}

async function addStarter(): Promise<string> {
  await api.POST('/api/models', { body: { model: 'starter' } })
  await refresh('models')
  return '/models/downloads'
}

async function makeImage(): Promise<string> {
  const { id } = (await (await sendJson('/api/jobs', bodies.image)).json()) as { id: string }
  return `/jobs/${id}`
}

/** Stores the workflow, so that it can be looked at and changed, and runs it. */
async function runWorkflow(): Promise<string> {
  const answer = await sendJson('/api/workflows', bodies.workflow)
  const { workflow } = (await answer.json()) as { workflow: { id: string } }
  const params = { path: { id: workflow.id } }
  const { execution } = await dataOf(api.POST('/api/workflows/{id}/execute', { params, body: {} }))
  return `/executions/${execution.id}`
}
