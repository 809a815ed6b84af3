import {
  Activity,
  Bot,
  Boxes,
  Building2,
  ChartColumn,
  CircleCheck,
  Cpu,
  Files,
  Images,
  Layers,
  ListChecks,
  type LucideIcon,
  MessageSquare,
  Network,
  Play,
  ScrollText,
  Settings,
  Webhook,
} from 'lucide-react'
import type { ComponentType } from 'react'
import type { Scope } from './api/client.ts'
import { type Loaded, loaded } from './components/loaded.tsx'
import { shellText } from './text/shell.ts'

/** The groups of the navigation in their order. */
export type Group = keyof typeof shellText.groups

/** One page of the console. */
export interface Page {
  /** Below `/console`; `/` is the first page. Pages with parts, such as one job, have their own routes below it. */
  path: string
  name: string
  /** Where the navigation lists it; undefined for the first page, which stands above the groups. */
  group: Group | undefined
  icon: LucideIcon
  /** The key that opens the page after `g`. */
  key: string
  /** Without this scope the page is not offered. */
  scope: Scope
  /** The page, whose chunk is loaded when it is opened. */
  Content: Loaded
}

const page = (
  group: Group | undefined,
  name: keyof typeof shellText.pages,
  icon: LucideIcon,
  key: string,
  scope: Scope,
  load: () => Promise<{ default: ComponentType }>,
  path = `/${name}`,
): Page => ({ path, name: shellText.pages[name], group, icon, key, scope, Content: loaded(load) })

/** All pages in the order of the navigation. */
export const pages: readonly Page[] = [
  page(undefined, 'overview', Activity, 'h', 'user:read', () => import('./pages/overview/overview.tsx'), '/'),
  page('create', 'chat', MessageSquare, 'c', 'user:write', () => import('./pages/chat/chat.tsx')),
  page('create', 'playground', Play, 'p', 'user:write', () => import('./pages/playground/playground.tsx')),
  page('create', 'workflows', Network, 'w', 'user:read', () => import('./pages/workflows/workflows.tsx')),
  page('create', 'library', Images, 'l', 'user:read', () => import('./pages/library/library.tsx')),
  page('activity', 'jobs', ListChecks, 'j', 'user:read', () => import('./pages/jobs/jobs.tsx')),
  page('activity', 'executions', Boxes, 'e', 'user:read', () => import('./pages/executions/executions.tsx')),
  page('activity', 'approvals', CircleCheck, 'a', 'user:read', () => import('./pages/approvals/approvals.tsx')),
  page('activity', 'batches', Layers, 'b', 'user:read', () => import('./pages/batches/batches.tsx')),
  page('activity', 'files', Files, 'f', 'user:read', () => import('./pages/files/files.tsx')),
  page('activity', 'usage', ChartColumn, 'u', 'user:read', () => import('./pages/usage/usage.tsx')),
  page('manage', 'models', Bot, 'm', 'user:read', () => import('./pages/models/models.tsx')),
  page('manage', 'engines', Cpu, 'n', 'admin:read', () => import('./pages/engines/engines.tsx')),
  page(
    'manage',
    'organizations',
    Building2,
    'o',
    'admin:read',
    () => import('./pages/organizations/organizations.tsx'),
  ),
  page('manage', 'webhooks', Webhook, 'k', 'admin:read', () => import('./pages/webhooks/webhooks.tsx')),
  page('manage', 'audit', ScrollText, 't', 'admin:read', () => import('./pages/audit/audit.tsx')),
  page('manage', 'system', Settings, 's', 'admin:read', () => import('./pages/system/system.tsx')),
]

/** Whether the address belongs to the page. */
export const isAt = ({ path }: Page, location: string): boolean =>
  path === '/' ? location === '/' : location === path || location.startsWith(`${path}/`)
