//! The tiles of dashboards.

import type { Schemas } from '../../api/client';
import { quantityName } from '../devices/names';

export type DashboardTile = Schemas['Tile'];

export const MAX_TILES = 40;

/** What a tile shows of its device, as words. */
export const shows = ({ kind, quantity }: DashboardTile) => (quantity ? `${quantityName(quantity)}${kind === 'CHART' ? ', 24 hours' : ''}` : 'state');
export const keyOf = ({ kind, deviceInstanceId, quantity }: DashboardTile) => `${kind} ${deviceInstanceId} ${quantity ?? ''}`;
