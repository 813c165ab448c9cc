//! Values of live events as text.

import { formatValue } from '../../format';
import { byInterest, nameOf, quantityName } from '../devices/names';
import type { Value } from './messages';

/** `temperature 21.4 °C`. */
export const written = (value: Value) => `${quantityName(nameOf(value))} ${formatValue(value.value, value.unit, value.quantity)}`;

/** The values that people look for, first. */
export function ordered(values: Value[]): Value[] {
  const order = byInterest(values.map(nameOf));
  return [...values].sort((one, other) => order.indexOf(nameOf(one)) - order.indexOf(nameOf(other)));
}
