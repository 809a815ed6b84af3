import { Plus } from 'lucide-react'
import { useState } from 'react'
import { Route, Switch, useLocation } from 'wouter'
import { api, dataOf, refresh, type Schema, usePages, useSession } from '../../api/client.ts'
import { announce } from '../../components/announcements.tsx'
import { Button, TextLink } from '../../components/button.tsx'
import { Empty, GuideLink, MoreButton, PageHeading, Queried } from '../../components/page.tsx'
import { showSecret } from '../../components/shown-secret.tsx'
import { type Column, columnsOf, Table } from '../../components/table.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { Time } from '../../components/time.tsx'
import { shellText } from '../../text/shell.ts'
import { webhooksText as text } from '../../text/webhooks.ts'
import { Deliveries } from './deliveries.tsx'
import { RequestSecret } from './request-secret.tsx'
import { WebhookDetail, WebhookState } from './webhook-detail.tsx'
import { WebhookForm } from './webhook-form.tsx'

type Webhook = Schema<'WebhookEndpoint'>

const columns: readonly Column<Webhook>[] = columnsOf(text.columns, {
  name: ({ id, name }) => <TextLink href={`/webhooks/${id}`} className="font-medium break-words" label={name} />,
  url: ({ url }) => <span className="break-all">{url}</span>,
  events: ({ event_types }) => event_types.join(', '),
  state: webhook => <WebhookState webhook={webhook} />,
  created: ({ created_at }) => <Time at={created_at} />,
})

function CreateButton() {
  const [isOpen, setOpen] = useState(false)
  const [, go] = useLocation()
  const save = async (body: Schema<'WebhookCreate'>) => {
    const { webhook, signing_secret: secret } = await dataOf(api.POST('/api/webhooks', { body }))
    void refresh('webhooks')
    announce('good', text.created(webhook.name))
    showSecret({ name: webhook.name, secret })
    go(`/webhooks/${webhook.id}`)
  }
  return (
    <>
      <Button primary icon={Plus} onClick={() => setOpen(true)} label={text.create} />
      {isOpen && <WebhookForm title={text.create} action={text.create} save={save} close={() => setOpen(false)} />}
    </>
  )
}

function Endpoints() {
  const { can } = useSession()
  const query = usePages(['webhooks', 'list'], after =>
    api.GET('/api/webhooks', { params: { query: { limit: 50, after } } }),
  )
  return (
    <>
      <Queried query={query} lines={4}>
        {({ pages }) => {
          const rows = pages.flatMap(({ webhooks }) => webhooks)
          return rows.length > 0 ? (
            <Table label={text.parts.endpoints} columns={columns} rows={rows} rowKey="id" />
          ) : (
            <Empty title={text.none}>
              <p>{text.noneHelp}</p>
              {can('admin:write') && <CreateButton />}
              <GuideLink guide="webhooks" label={text.guide} />
            </Empty>
          )
        }}
      </Queried>
      <MoreButton query={query} className="mt-3" />
    </>
  )
}

const parts = { endpoints: Endpoints, deliveries: Deliveries, secret: RequestSecret }
type Part = keyof typeof parts

/** The endpoints of the organization, what was sent to them, and the secret of the webhooks of single requests. */
function WebhooksPart({ part }: { part: Part }) {
  const { can } = useSession()
  const [, go] = useLocation()
  const Content = parts[part]
  return (
    <>
      <PageHeading
        title={shellText.pages.webhooks}
        about={text.about}
        actions={can('admin:write') && part === 'endpoints' && <CreateButton />}
      />
      <Tabs
        label={text.tabs}
        names={text.parts}
        current={part}
        choose={one => go(one === 'endpoints' ? '/webhooks' : `/webhooks/${one}`)}
      >
        <Content />
      </Tabs>
    </>
  )
}

/** Webhooks, with one of them below `/webhooks/<id>`. */
export default function WebhooksPage() {
  return (
    <Switch>
      <Route path="/webhooks/deliveries">
        <WebhooksPart part="deliveries" />
      </Route>
      <Route path="/webhooks/secret">
        <WebhooksPart part="secret" />
      </Route>
      <Route path="/webhooks/:id">{({ id }) => <WebhookDetail key={id} id={id} />}</Route>
      <Route>
        <WebhooksPart part="endpoints" />
      </Route>
    </Switch>
  )
}
